"""What runs studies, keeps what they measure, and sets it beside the papers."""
