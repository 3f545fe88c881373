"""A party's side of a round of sums: what it adds up, hides, and is worth on its held-back rows."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from math import ceil, sqrt
from typing import cast

import numpy as np
import numpy.typing as npt

from cobasis.errors import StepError
from cobasis.features.contract import CategoryFeature, columns_in
from cobasis.features.encoder import encode, encoded_columns
from cobasis.features.maps import Columns, turn_of
from cobasis.linalg.arrays import Integers, Matrix, gathered
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.chain import Chain
from cobasis.models.chain_file import encode_chain
from cobasis.privacy.discrete import discrete_gaussian
from cobasis.protocol import sums_terms
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.baseline import TableLayout
from cobasis.protocol.explanations import ModelUser, owners_of
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.messages import Labels, MaskedSums, Return, encode_labels
from cobasis.protocol.newton import NewtonLayout
from cobasis.protocol.projection import LabelledRows, RowsInMemory
from cobasis.protocol.refusals import check_return, refuse_beyond, refuse_few, require_known
from cobasis.protocol.scores import MOST_SHUFFLED
from cobasis.protocol.totals import AnyLayout, Layout, n_small


class SumsParty(ModelUser):
    """One organisation's side of a round of sums; rows stay here, and so do its own sums.

    `keys` are every participant's public mask keys, in the agreement's order; a later `attempt` may
    leave some out. Out go masked sums: whoever lacks another party's file cannot read them.
    """

    def __init__(
        self,
        name: str,
        *,
        agreement: Agreement,
        key: MaskKey,
        keys: Mapping[str, str],
        attempt: int = 1,
    ) -> None:
        require_known(name, agreement.parties)
        # Whoever is left out, or stands for two, has no mask of its own in what this party sends:
        # with keys of nobody else its sums would leave in the clear.
        expected = agreement.parties
        if attempt > 1:
            expected = tuple(each for each in expected if each in keys)
        few = len(keys) < agreement.minimum_parties
        if tuple(keys) != expected or few or len({*keys.values()}) < len(keys):
            raise StepError(
                f"party '{name}' was given mask keys of {', '.join(keys) or 'nobody'}, and sums "
                f"are hidden by one key of each of {', '.join(expected)}, in this order, and of "
                f"{agreement.minimum_parties} at least. Ask for the roster of this round."
            )
        self.name, self.agreement, self.terms = name, agreement, sums_terms.terms_of(agreement)
        self.keys, self._key, self._attempt = keys, key, attempt
        # cells of few people, this party's own, of what the sums count; None where they count none
        self.small_cells: int | None = None
        self.common: tuple[float, ...] = ()  # what two own rows have in common under each map
        self._sent = set[int]()  # exchanges of which the sums were made

    def prepare(
        self, rows: npt.ArrayLike, labels: npt.ArrayLike, *, exchange: int = 1
    ) -> MaskedSums:
        """Map rows, sum them up and mask the sums, once: two contents of a mask would differ.

        In later exchanges at the weights of the model that was accepted.
        """
        table = encode(rows, self.agreement.features, party=self.name)
        told = encode_labels(labels, self.agreement, n_rows=len(table), party=self.name)
        model = cast("Chain", self.model) if exchange > 1 else None
        return self.sum_up(RowsInMemory(table, told), model=model, exchange=exchange)

    def sum_up(
        self, rows: LabelledRows, *, model: Chain | None = None, exchange: int = 1
    ) -> MaskedSums:
        """Do what `prepare` does of encoded rows that come block by block, in one pass.

        Of a regression by steps at the weights of the model that came back last, if one did.
        """
        layout = sums_terms.layout_of(self.agreement)
        refuse_few(rows.shape[0], agreement=self.agreement, party=self.name)
        refuse_beyond(rows.labels(), self.terms, party=self.name)
        first = found = _over(rows, self._adding(layout, model), n_words=layout.n_words)
        if model is not None:  # the first step's sums count, and later ones are of the same people
            first = _over(rows, self._adding(layout, None), n_words=layout.n_words)
        self.small_cells = _small_cells(first, self.agreement)
        if isinstance(layout, Layout):
            n_waves = (getattr(each, "n_waves", 0) for each in self.terms.maps)
            self.common = layout.common(found, n_waves)
        return self._hidden(found, layout, exchange=exchange, model=model)

    def score(self, rows: LabelledRows, model: Chain) -> MaskedSums:
        """Sum up what the common model is worth on encoded rows that were held back, and mask it.

        Of too few rows, or too few of a class that the party holds, zeros are sent.
        """
        layout, labels = sums_terms.score_layout(self.agreement), cast("Labels", rows.labels())
        refuse_beyond(labels, self.terms, party=self.name)
        found, self.small_cells = np.zeros(layout.n_words, dtype=np.int64), None
        if layout.takes(labels):
            first = layout.n_words_of_scores
            adding = lambda block, own: layout.added(model.outputs(block), own)  # noqa: E731
            found[:first] = _over(rows, adding, n_words=first)
            if layout.n_shuffled:  # the shuffles follow from the party's mask key
                n_shuffled = min(len(labels), MOST_SHUFFLED)
                at = np.linspace(0, len(labels) - 1, n_shuffled).astype(np.intp)
                found[first:] = layout.shuffled(
                    model.outputs,
                    gathered(rows, at),
                    labels=labels[at],
                    groups=owners_of(self.agreement.features),
                    stream=self._key.stream("importance"),
                )
            self.small_cells = layout.small_cells(found)
        return self._hidden(found, layout, exchange=2, model=model)

    def _hidden(
        self, found: Integers, layout: AnyLayout, *, exchange: int, model: Chain | None
    ) -> MaskedSums:
        """Mask sums, with noise where it is agreed; StepError for a second content of a mask."""
        agreement, roster = self.agreement, sums_terms.roster_of(self.keys)
        if exchange in self._sent:
            raise StepError(
                f"party '{self.name}' has made its sums in round '{agreement.round_id}'; others "
                "under the same masks would show what changed. Send those, or agree on a new round."
            )
        self._sent.add(exchange)
        # Masks of parties that were sent two models do not cancel: whoever got another one would
        # stand out in a total of the others.
        of = b"" if model is None else encode_chain(model)
        salt = hashlib.sha256(agreement.digest() + roster + layout.digest() + of).digest()
        found = found if agreement.dp is None else found + self._noise(found, salt)
        occasion = (agreement.round_id, exchange, self._attempt)
        words = self._key.masked(
            found, name=self.name, keys=self.keys, salt=salt, occasion=occasion
        )
        return MaskedSums(
            party=self.name,
            agreement_digest=agreement.digest(),
            roster=roster,
            attempt=self._attempt,
            exchange=exchange,
            words=words,
            simulated=self._key.simulated,
        )

    def _noise(self, sums: Integers, salt: bytes) -> Integers:
        """Draw the party's share of the noise, one integer for each sum.

        It follows from the mask key, from what the round is about, and from the sums: the same
        sums, made once more, have the same noise, and others have noise of their own.
        """
        agreement, layout = self.agreement, sums_terms.model_layout(self.agreement)
        own = cast("sums_terms.SumsNoise", sums_terms.noise_of(agreement)).own
        of = hashlib.sha256(salt + bytes([self._attempt]) + sums.tobytes()).hexdigest()
        drawn, [width] = self._key.stream(f"noise/{of}"), layout.widths
        rows, columns = layout.places(width)
        # A product of two features counts twice in the length that the sensitivity is about, for
        # it stands twice in the table, so it takes half the squares of the others' noise.
        n_features = layout.n_features[0]
        twice = (rows != columns) & (columns < n_features)
        noise = np.empty(len(sums), dtype=np.int64)
        for places, scale in ((~twice, own), (twice, ceil(own / sqrt(2)))):
            count = int(np.count_nonzero(places))
            noise[places] = discrete_gaussian(drawn, scale=scale, count=count)
        return noise

    def _adding(
        self, layout: Layout | TableLayout | NewtonLayout, model: Chain | None
    ) -> Callable[[Matrix, Labels], Integers]:
        """Return what adds up some rows with their labels; numbers are placed from -1 to 1."""
        if isinstance(layout, NewtonLayout):
            turn = turn_of(Columns(), self.agreement.features)
            return partial(layout.added, turn=turn, model=model)
        if isinstance(layout, TableLayout):
            return layout.added
        low, high = self.terms.target_range or (-1.0, 1.0)  # a regression has one
        hot: Matrix = np.eye(len(self.agreement.classes))
        turns = [turn_of(each, self.agreement.features) for each in self.terms.maps]

        def added(block: Matrix, own: Labels) -> Integers:
            numbers = own.astype(np.float64)[:, None]
            targets = hot[own] if len(hot) else (numbers - low) / (high - low) * 2 - 1
            return layout.added(block, targets, turns=turns)

        return added

    def accept(self, returned: Return) -> None:
        check_return(returned, self.agreement, party=self.name)
        self._return = returned


def _over(
    rows: LabelledRows, adding: Callable[[Matrix, Labels], Integers], *, n_words: int
) -> Integers:
    told = rows.labels()
    labels = np.zeros(rows.shape[0]) if told is None else told  # a table may be of no groups

    def added(first: int, blocks: Iterator[Matrix]) -> Integers:
        sums = np.zeros(n_words, dtype=np.int64)
        for block in blocks:
            sums += adding(block, labels[first : first + len(block)])
            first += len(block)
        return sums

    with one_blas_thread():
        return sum(rows.over(added, step="adding up"), np.zeros(n_words, dtype=np.int64))


def _small_cells(sums: Integers, agreement: Agreement) -> int | None:
    """Count the cells of few people in two-way tables of words and classes; None without tables."""
    layout, columns = sums_terms.layout_of(agreement), encoded_columns(agreement.features)
    if isinstance(layout, TableLayout):
        return layout.small_cells(sums)
    kinds = [isinstance(each.feature, CategoryFeature) for each in columns]
    of = [each.of or (at,) for at, each in enumerate(columns)]  # of products of words, too
    ones = np.eye(1 + len(columns), dtype=np.int64)
    words = [ones[at] for at, parts in enumerate(of, 1) if all(kinds[part] for part in parts)]
    for each in columns_in(agreement.features):  # a base follows from the other words
        if isinstance(each, CategoryFeature) and each.base is not None:
            own = [ones[at] for at, column in enumerate(columns, 1) if column.feature == each]
            words.append(ones[0] - np.sum(own, axis=0, dtype=np.int64))
    if isinstance(layout, NewtonLayout):
        picked = np.array(words, dtype=np.int64).reshape(-1, len(ones))
        return layout.small_cells(sums, words=picked) if words or layout.grid else None
    maps = sums_terms.terms_of(agreement).maps
    at = next((at for at, each in enumerate(maps) if isinstance(each, Columns) and words), None)
    if at is None:
        return None
    table = next(islice(layout.tables(sums), at, None))
    classes = np.eye(len(table), dtype=np.int64)[len(ones) :][: None if layout.one_hot else 0]
    places = np.vstack([np.pad(words, ((0, 0), (0, len(table) - len(ones)))), classes])
    cells = np.triu(places @ table @ places.T) >> 2 * layout.bits
    return n_small(cells)
