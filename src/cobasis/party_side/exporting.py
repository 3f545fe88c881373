"""The party's whole way from raw columns to a prediction as one ONNX file; secret."""

from pathlib import Path

from cobasis.bundle.whole import write_whole
from cobasis.models.graph_format import Precision
from cobasis.models.raw_graph import raw_graph
from cobasis.party_side.accepted import usable
from cobasis.party_side.desk import PartyDesk, digest_of
from cobasis.party_side.opening import refuse_target


def export_onnx(desk: PartyDesk, to: Path, *, precision: Precision = "float64") -> int:
    """Write encoding, ``F_i G_i`` and model as one graph that takes raw columns.

    Parameters
    ----------
    desk : PartyDesk
        The party's.
    to : Path
        The file; mode 0600.
    precision : {"float64", "float32"}
        Of numbers in, weights and scores.

    Returns
    -------
    int
        Its bytes.

    Raises
    ------
    StepError
        Nothing was accepted.
    DiskError
        It cannot be written.

    Notes
    -----
    **Who sees what.** The file is as secret as the party's basis, and says so: with it, rows of
    all parties can be read out of aligned ones. It is not sealed, since a runtime has to read it.

    **Cost.** One copy of the model.
    """
    refuse_target(to)
    found = usable(desk)
    data = raw_graph(
        desk.agreement.features, found.model, map_in=found.map_in(), precision=precision
    )
    write_whole(to, data)
    desk.transcript.append("exported", {"sha256": digest_of(data)})
    return len(data)
