"""Who somebody is: the keys of a party or of the analyst, made, kept encrypted, and used."""
