"""What the analyst's commands do: receive, run, remove, forget, verify.

Nothing here can import a secret, a vault, a party or a party's side; a contract checks it.
"""
