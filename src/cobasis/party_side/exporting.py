"""The party's whole way from raw columns to a prediction as one ONNX file; secret."""

from pathlib import Path

from cobasis.disk.whole import write_whole
from cobasis.models.onnx import Precision, raw_graph
from cobasis.party_side.accepted import usable
from cobasis.party_side.desk import PartyDesk, digest_of, refuse_target


def export_onnx(desk: PartyDesk, to: Path, *, precision: Precision = "float64") -> int:
    """Write encoding, ``F_i G_i`` and model as one graph that takes raw columns."""
    refuse_target(to)
    found, agreement = usable(desk), desk.agreement
    data = raw_graph(
        agreement.features,
        found.model,
        map_in=found.map_in(),
        classes=agreement.classes,
        precision=precision,
    )
    write_whole(to, data)
    desk.transcript.append("exported", {"sha256": digest_of(data)})
    return len(data)
