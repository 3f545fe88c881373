"""Every attack of this package in words: who can do it, what comes out, and what stops it.

The page on the threat model shows exactly these lines; a test compares the two, and finds the
class and the test that each line names.
"""

from dataclasses import dataclass
from typing import Literal

Role = Literal[
    "whoever opens an upload",
    "the analyst alone",
    "the analyst and one party",
    "a party alone",
    "several parties together",
    "a party that lies",
]
"""Who can do it, from the one who needs least to the one who breaks the rules."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An attack in words."""

    name: str
    attack: str  # dotted name of the class
    role: Role  # the least that somebody has to be
    needs: str  # besides what the role sees anyway
    recovers: str  # with a measured figure
    stops: str
    does_not_stop: str  # what looks as if it did
    test: str  # path and name


def shown_in(name: str, test: str) -> str:
    """Return the path and name of a test of the attack module of that name."""
    return f"tests/privacy/attacks/test_{name}.py::{test}"


def class_in(module: str, name: str) -> str:
    """Return the dotted name of a class of this package."""
    return f"cobasis.privacy.attacks.{module}.{name}"


CATALOGUE: tuple[Entry, ...] = (
    Entry(
        name="Structure",
        attack=class_in("structure", "StandingAlone"),
        role="whoever opens an upload",
        needs="nothing",
        recovers="who is near whom, who is whose duplicate, who stands alone: of each person's ten "
        "nearest 83 % are kept (digits, l = 16), 89 % (cancer, l = 10)",
        stops="noise; few components blur it (digits, l = 4: 38 %)",
        does_not_stop="the secret basis, its rotation, shuffled rows",
        test=shown_in("structure", "test_distances_and_neighbours_survive_projection"),
    ),
    Entry(
        name="ICA on the anchor image",
        attack=class_in("anchor_ica", "AnchorIca"),
        role="whoever opens an upload",
        needs="an anchor of independent, not Gaussian entries, such as uniform ones",
        recovers="the secret basis: cancer, l = m = 30, 5,000 anchor rows, everybody re-identified",
        stops="the isometric and the Gaussian anchor: both stay at chance",
        does_not_stop="a long secret; fewer components only slow it down",
        test=shown_in("anchor_ica", "test_a_uniform_anchor_shows_every_record_at_full_width"),
    ),
    Entry(
        name="Mean of the anchor image",
        attack=class_in("anchor_ica", "AnchorMean"),
        role="whoever opens an upload",
        needs="an anchor whose entries have a mean, such as uniform ones",
        recovers="the sum of each raw row, nearly exactly",
        stops="the isometric and the Gaussian anchor, whose entries have mean 0",
        does_not_stop="a long secret, few components",
        test=shown_in("anchor_ica", "test_the_mean_row_of_a_uniform_anchor_shows_the_row_sums"),
    ),
    Entry(
        name="A badly drawn isometry",
        attack=class_in("bad_haar", "TypicalAnchor"),
        role="whoever opens an upload",
        needs="a program that draws its isometric anchor by another recipe, and reads like ours",
        recovers="entries or span of the secret basis, from the anchor image alone",
        stops="Stewart's construction to the letter",
        does_not_stop="a long secret; that A' A = I and the accuracy are right",
        test=shown_in("bad_haar", "test_every_shortcut_lets_entries_of_the_basis_be_read"),
    ),
    Entry(
        name="Guessed seed",
        attack=class_in("guessed_seed", "GuessedSeed"),
        role="whoever opens an upload",
        needs="an anchor drawn from a seed that can be tried: an integer, a date, a word",
        recovers="the anchor, and with it all that collusion does; a million seeds take minutes",
        stops="32 bytes from the system's generator, which is all that the library takes",
        does_not_stop="hashing a short seed; a better anchor",
        test=shown_in("guessed_seed", "test_a_small_seed_gives_all_that_collusion_gives"),
    ),
    Entry(
        name="Public sample",
        attack=class_in("public_sample", "PublicSample"),
        role="the analyst alone",
        needs="some hundred records of the same kind, of other people; labels help much",
        recovers="digits, l = 16: R2 .81, 91 % re-identified with labels, 52 % without",
        stops="a Haar basis, if no labels travel with it: then it is chance; noise",
        does_not_stop="the anchor, which is not needed; a Haar basis with labels (digits, l = 16: "
        "85 % linked); more parties, which reveal more about each",
        test=shown_in(
            "public_sample", "test_a_public_sample_gets_at_least_what_the_notes_measured"
        ),
    ),
    Entry(
        name="Known records",
        attack=class_in("known_records", "KnownRecords"),
        role="the analyst alone",
        needs="raw records of some of the party's people, and which rows are theirs",
        recovers="everybody else's, the better the more are known: digits, l = 16, R2 .58 and 39 % "
        "re-identified with 16 known, .73 and 74 % with 32",
        stops="many components per known person; noise",
        does_not_stop="the secret basis, its rotation",
        test=shown_in("known_records", "test_known_records_get_what_the_notes_measured"),
    ),
    Entry(
        name="Candidates without a basis",
        attack=class_in("linkage", "CandidatesAlone"),
        role="the analyst alone",
        needs="a list of raw records on which the party's people stand among others; no labels",
        recovers="who each row is, and by that the basis: everybody (digits, l = 16, 300 people on "
        "a list of 1,797; cancer, l = 5, 280 of 569; Fashion-MNIST, l = 10 and 100, 500 of 1,000)",
        stops="a Haar basis (at most 5 % right, lists twice as long as the party); few people and "
        "components on a long list; noise",
        does_not_stop="the anchor, which is not needed; a list that half of the people are not on; "
        "a basis from public rows",
        test=shown_in(
            "linkage",
            "test_a_list_alone_names_everybody_where_the_basis_is_the_partys_own_svd",
        ),
    ),
    Entry(
        name="Same person in two hospitals",
        attack=class_in("linkage", "SamePerson"),
        role="the analyst alone",
        needs="nothing: it aligns the uploads anyway",
        recovers="which rows of two parties are one person: all of them, also with 5 % error of "
        "measurement; AUC above .94 for who is in both at all",
        stops="noise, drawn anew at each party",
        does_not_stop="own spans, shuffled rows",
        test=shown_in("linkage", "test_who_was_in_two_hospitals_is_found_in_both"),
    ),
    Entry(
        name="Attribute inference",
        attack=class_in("attribute", "KnownAttribute"),
        role="the analyst alone",
        needs="one fact of some people, and which rows are theirs",
        recovers="whether each other person is above the median: with 20 known AUC .90 (cancer, "
        "l = 5), .83 (digits, l = 8); labels alone .70",
        stops="noise; fewer components, for facts that the leading ones do not show",
        does_not_stop="the secret basis: a rotation changes nothing",
        test=shown_in("attribute", "test_a_few_known_people_give_everybodys_attribute_away"),
    ),
    Entry(
        name="Public anchor",
        attack=class_in("public_anchor", "PublicAnchor"),
        role="the analyst alone",
        needs="the collection that the anchor's rows were taken from",
        recovers="which rows they are, all of them, and by that all that collusion recovers",
        stops="an anchor that is drawn and not chosen",
        does_not_stop="a large collection; a secret choice from it",
        test=shown_in(
            "public_anchor",
            "test_every_anchor_row_of_digits_is_identified_and_the_result_is_collusions",
        ),
    ),
    Entry(
        name="Difference of two uploads",
        attack=class_in("difference", "Difference"),
        role="the analyst alone",
        needs="an earlier upload of the same party",
        recovers="the row of the one person who came, or who left, in every run",
        stops="changing more than 10 rows and 5 % at once, or none",
        does_not_stop="shuffled rows; a new span, which shows more",
        test=shown_in("difference", "test_the_one_who_came_is_isolated_in_every_run"),
    ),
    Entry(
        name="Collusion",
        attack=class_in("collusion", "Collusion"),
        role="the analyst and one party",
        needs="any one party's anchor, or the consortium secret",
        recovers="every party's basis exactly, and of its rows all that the basis spans: digits, "
        "l = 16, R2 .85, 95 % re-identified",
        stops="trust and contracts; few components and a Haar basis lower the content; only noise "
        "lowers linkage",
        does_not_stop="any anchor; more parties, of whom each is one more that may help",
        test=shown_in("collusion", "test_collusion_gets_what_the_notes_measured"),
    ),
    Entry(
        name="Another party's frame",
        attack=class_in("collusion", "OtherPartysFrame"),
        role="the analyst and one party",
        needs="one party's basis and change of basis, from a stolen laptop for instance",
        recovers="nearly what collusion does: digits, l = 16, four parties, 97 % re-identified "
        "with one span, 91 % with own spans",
        stops="keeping F_i G_i as the raw rows are kept; noise",
        does_not_stop="destroying the anchor after the round",
        test=shown_in(
            "collusion", "test_after_a_round_another_partys_frame_rebuilds_what_the_notes_measured"
        ),
    ),
    Entry(
        name="Leaked basis",
        attack=class_in("collusion", "LeakedBasis"),
        role="the analyst and one party",
        needs="the party's own secret basis, stolen or found by another attack",
        recovers="of the rows all that the basis spans; with rows of the same kind more",
        stops="the encrypted vault; few components and a Haar basis lower the content",
        does_not_stop="the rotation, which is part of what leaked",
        test=shown_in("collusion", "test_a_prior_fills_in_what_a_random_basis_does_not_show"),
    ),
    Entry(
        name="Candidates and a basis",
        attack=class_in("linkage", "CandidateList"),
        role="the analyst and one party",
        needs="a list of raw records, and a basis from any other attack",
        recovers="who each row is: everybody on the list, at every l, for every basis",
        stops="noise: at a fifth of a row's size half are linked, at two fifths a tenth (digits, "
        "a list of 800)",
        does_not_stop="few components, a Haar basis, a longer list",
        test=shown_in("linkage", "test_a_leaked_basis_and_a_list_name_everybody_at_every_l"),
    ),
    Entry(
        name="Repeated uploads",
        attack=class_in("repeated", "Repeated"),
        role="the analyst and one party",
        needs="several uploads of the same people, each through a span of its own",
        recovers="every row exactly, from m / l uploads on",
        stops="one span per data set for life, which the vault keeps; a fresh one is refused",
        does_not_stop="fewer components; another order of the rows, if rows of the kind are known",
        test=shown_in("repeated", "test_fresh_spans_that_fill_all_features_give_every_row_exactly"),
    ),
    Entry(
        name="Inversion of stored rows",
        attack=class_in("inversion", "ModelInversion"),
        role="a party alone",
        needs="a model that stores rows: support vectors, neighbours, Gaussian process",
        recovers="the others' records that are in it: digits, l = 16, 48 % of them, R2 .77 to .81, "
        "90 to 93 % re-identified; two models in one hand say who came between them (95 % right)",
        stops="families of weights: linear, network, random features; the others are refused",
        does_not_stop="a file format; own spans",
        test=shown_in("inversion", "test_support_vectors_give_the_others_records_away"),
    ),
    Entry(
        name="Membership by fit",
        attack=class_in("membership", "MembershipByFit"),
        role="a party alone",
        needs="record and label of the person asked about",
        recovers="hardly more than chance: AUC .51 to .54 for logistic regression and networks",
        stops="a model that does not learn by heart; early stopping",
        does_not_stop="alignment; a threshold on the fit is the simplest such attack, and better "
        "ones were not tried",
        test=shown_in("membership", "test_models_of_weights_hardly_tell_who_trained_them"),
    ),
    Entry(
        name="Membership by stored rows",
        attack=class_in("membership", "MembershipByStoredRows"),
        role="a party alone",
        needs="the record of the person asked about, and a model that stores rows",
        recovers="AUC .57 (cancer) to .77 (digits), 22 to 45 % found at 1 % false alarms",
        stops="families of weights; the others are refused",
        does_not_stop="leaving labels out of the return",
        test=shown_in("membership", "test_stored_rows_tell_without_any_label"),
    ),
    Entry(
        name="Membership by a shared span",
        attack=class_in("membership", "MembershipBySpan"),
        role="a party alone",
        needs="one party's own span as the span of all (samespan conditions, never a real round)",
        recovers="who is in that party: exactly where n <= l; AUC .94 at n = 3 l, .77 at 6 l, .53 "
        "at 50 l",
        stops="a basis from public rows, a Haar basis, a consensus of many; n > 20 l",
        does_not_stop="the rotation E_i",
        test=shown_in("membership", "test_a_shared_span_of_one_party_tells_its_people_from_others"),
    ),
    Entry(
        name="Reflection in the consensus",
        attack=class_in("reflection", "Reflection"),
        role="several parties together",
        needs="all parties of a consensus but one; of two parties, either",
        recovers="the last party's span, exactly while its angles to the consensus are below 45 "
        "degrees",
        stops="one party more that does not help; two parties are refused",
        does_not_stop="the anchor, which every party has; the rotation E_i",
        test=shown_in("reflection", "test_all_but_one_get_the_last_span_exactly_below_45_degrees"),
    ),
    Entry(
        name="Another anchor",
        attack=class_in("poisoning", "AnotherAnchor"),
        role="a party that lies",
        needs="nothing: it knows the secret, so its anchor tag is right",
        recovers="nothing; the others lose 1.5 points, and five where it is the reference",
        stops="nothing; under an isometric anchor the evidence reads that it cannot tell",
        does_not_stop="the anchor tag, which finds honest mistakes only; the certificate, which "
        "accuses nobody",
        test=shown_in("poisoning", "test_another_anchor_passes_and_hurts_most_at_the_reference"),
    ),
    Entry(
        name="Another scale",
        attack=class_in("poisoning", "OtherScale"),
        role="a party that lies",
        needs="nothing; wrong units do the same",
        recovers="nothing; rows a thousand times too large leave everybody with chance",
        stops="the scale band, for rows, and for an anchor image scaled with them",
        does_not_stop="the band, where rows are at most 10 times too large: that costs two points",
        test=shown_in(
            "poisoning",
            "test_rows_and_image_scaled_together_ruin_the_model_and_are_refused",
        ),
    ),
    Entry(
        name="Wrong labels",
        attack=class_in("poisoning", "WrongLabels"),
        role="a party that lies",
        needs="nothing",
        recovers="nothing; of ten parties one costs the others two points, three eight",
        stops="nothing; a party that accepts is shown what the model is worth on its own rows",
        does_not_stop="the certificate: it does not look at labels",
        test=shown_in(
            "poisoning",
            "test_one_partys_wrong_labels_cost_little_three_parties_much_and_nothing_notices",
        ),
    ),
    Entry(
        name="Turned rows",
        attack=class_in("poisoning", "TurnedRows"),
        role="a party that lies",
        needs="nothing",
        recovers="nothing; costs about what wrong labels cost",
        stops="nothing; a party that accepts is shown what the model is worth on its own rows",
        does_not_stop="the certificate: image, lengths and distances are as they should be; "
        "evidence that cannot tell is no accusation",
        test=shown_in("poisoning", "test_turned_rows_cost_as_much_and_pass"),
    ),
)
"""From the attacker who needs least to the one who breaks the rules."""
