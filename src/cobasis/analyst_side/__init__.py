"""What the analyst's commands do: receive, run, add, remove, verify.

Nothing here can import a secret, a vault, a party or a party's side; a contract checks it.
"""
