"""Receipts as text, to be sealed in a bundle or read by anybody."""

import json

from pydantic import ValidationError

from cobasis.errors import BundleError
from cobasis.protocol.receipts import SignedReceipt

FORMAT = "cobasis/receipt/1"
MAX_BYTES = 2**16


def receipt_text(signed: SignedReceipt) -> bytes:
    """Return a receipt as canonical JSON and a line feed.

    Parameters
    ----------
    signed : SignedReceipt
        Countersigned or not.

    Returns
    -------
    bytes
        UTF-8.

    Notes
    -----
    **Who sees what.** Whoever gets it; it holds no number from a row.

    **Cost.** None.
    """
    told = {"format": FORMAT, **signed.model_dump()}
    return json.dumps(told, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def read_receipt(text: bytes) -> SignedReceipt:
    """Read what `receipt_text` wrote; signatures are yet to be checked.

    Parameters
    ----------
    text : bytes
        Of at most 64 KiB.

    Returns
    -------
    SignedReceipt
        Its fields are of the right form.

    Raises
    ------
    BundleError
        The text is no receipt.

    Notes
    -----
    **Who sees what.** The message holds nothing from the text.

    **Cost.** None.
    """
    try:
        told = json.loads(text) if len(text) <= MAX_BYTES else None
        if isinstance(told, dict) and told.pop("format", None) == FORMAT:
            signed = SignedReceipt.model_validate(told)
            if receipt_text(signed) == text:
                return signed
    except (ValueError, RecursionError, ValidationError):
        pass
    msg = (
        f"this is no receipt: a '{FORMAT}' text is one line of canonical JSON with receipt, "
        "signature and countersignature. Ask the analyst for it once more."
    )
    raise BundleError(msg)
