"""Receipts as text, to be sealed in a bundle or read by anybody."""

import json

from pydantic import ValidationError

from cobasis.errors import BundleError
from cobasis.protocol.receipts import SignedReceipt

FORMAT = "cobasis/receipt/1"
MAX_BYTES = 2**16


def receipt_text(signed: SignedReceipt) -> bytes:
    """Return a receipt as canonical JSON and a line feed."""
    told = {"format": FORMAT, **signed.model_dump()}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def read_receipt(text: bytes) -> SignedReceipt:
    """Read what `receipt_text` wrote; signatures are yet to be checked."""
    try:
        told = json.loads(text) if len(text) <= MAX_BYTES else None
        if isinstance(told, dict) and told.pop("format", None) == FORMAT:
            signed = SignedReceipt.model_validate(told)
            if receipt_text(signed) == text:
                return signed
    except (ValueError, RecursionError, ValidationError):
        pass
    raise BundleError(
        f"this is no receipt: a '{FORMAT}' text is one line of canonical JSON with receipt, "
        "signature and countersignature. Ask the analyst for it once more."
    )
