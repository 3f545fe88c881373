import polars as pl

from walk.pages import PAGES, SUMS, shows, steps
from walk.world import ANALYST, PARTIES, World, assert_same_predictions


def test_every_line_of_the_page_prints_what_it_shows_and_no_secret_crosses(tmp_path):
    world = World(tmp_path / "world")
    world.make_folders()
    read = world.walk(range(1, 1 + len(steps(SUMS))), pages=SUMS)
    shown = [(line, printed) for line, printed in read if line.shown]
    assert len(shown) > 10
    for line, printed in shown:
        assert shows(line.shown, printed), f"{line.words}\n{printed}"
    for party in PARTIES:
        assert_same_predictions(world, party)
    new = {party: pl.read_csv(world.folder(party) / "out.csv")["prediction"] for party in PARTIES}
    assert all(each.equals(new["north"]) for each in new.values())
    crossed = {name.rpartition(".")[2] for _, to, name in world.sent if to == ANALYST}
    assert crossed == {"toml", "sig", "1-sums"}
    assert not [*world.root.rglob("*.secret")]
    # the page is shorter than those of the other round
    assert 2 * len(SUMS["sums"]) < sum(map(len, PAGES.values()))
