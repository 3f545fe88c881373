"""What the analyst's commands do: consensus, receive, run, add, remove, forget, verify.

Nothing here can import a secret, a vault, a party or a party's side; a contract checks it.
"""
