"""Attacks that a party takes part in: with the analyst, on what comes back, or by lying."""

from cobasis.privacy.attacks.entry import Entry, class_in, shown_in

ENTRIES = (
    Entry(
        name="Collusion",
        attack=class_in("collusion", "Collusion"),
        role="the analyst and one party",
        needs="any one party's anchor, or the consortium secret",
        recovers="every party's basis exactly, and of its rows all that the basis spans: digits, "
        "l = 16, R2 .85, 95 % re-identified",
        stops="trust and contracts; few components and a Haar basis lower the content; only noise "
        "lowers linkage",
        does_not_stop="any anchor; more parties, of whom each is one more that may help",
        test=shown_in("collusion", "test_collusion_gets_what_the_notes_measured"),
    ),
    Entry(
        name="Another party's frame",
        attack=class_in("collusion", "OtherPartysFrame"),
        role="the analyst and one party",
        needs="one party's basis and change of basis, from a stolen laptop for instance",
        recovers="nearly what collusion does: digits, l = 16, four parties, 97 % re-identified "
        "with one span, 91 % with own spans",
        stops="keeping F_i G_i as the raw rows are kept; noise",
        does_not_stop="destroying the anchor after the round",
        test=shown_in(
            "collusion", "test_after_a_round_another_partys_frame_rebuilds_what_the_notes_measured"
        ),
    ),
    Entry(
        name="Leaked basis",
        attack=class_in("collusion", "LeakedBasis"),
        role="the analyst and one party",
        needs="the party's own secret basis, stolen or found by another attack",
        recovers="of the rows all that the basis spans; with rows of the same kind more",
        stops="the encrypted vault; few components and a Haar basis lower the content",
        does_not_stop="the rotation, which is part of what leaked",
        test=shown_in("collusion", "test_a_prior_fills_in_what_a_random_basis_does_not_show"),
    ),
    Entry(
        name="Candidates and a basis",
        attack=class_in("linkage", "CandidateList"),
        role="the analyst and one party",
        needs="a list of raw records, and a basis from any other attack",
        recovers="who each row is: everybody on the list, at every l, for every basis",
        stops="noise: at a fifth of a row's size half are linked, at two fifths a tenth (digits, "
        "a list of 800)",
        does_not_stop="few components, a Haar basis, a longer list",
        test=shown_in("linkage", "test_a_leaked_basis_and_a_list_name_everybody_at_every_l"),
    ),
    Entry(
        name="Repeated uploads",
        attack=class_in("repeated", "Repeated"),
        role="the analyst and one party",
        needs="several uploads of the same people, each through a span of its own",
        recovers="every row exactly, from m / l uploads on",
        stops="one span per data set for life, which the vault keeps; a fresh one is refused",
        does_not_stop="fewer components; another order of the rows, if rows of the kind are known",
        test=shown_in("repeated", "test_fresh_spans_that_fill_all_features_give_every_row_exactly"),
    ),
    Entry(
        name="Inversion of stored rows",
        attack=class_in("inversion", "ModelInversion"),
        role="a party alone",
        needs="a model that stores rows: support vectors, neighbours, Gaussian process",
        recovers="the others' records that are in it: digits, l = 16, 48 % of them, R2 .77 to .81, "
        "90 to 93 % re-identified; two models in one hand say who came between them (95 % right)",
        stops="families of weights: linear, network, random features; the others are refused",
        does_not_stop="a file format; own spans",
        test=shown_in("inversion", "test_support_vectors_give_the_others_records_away"),
    ),
    Entry(
        name="Membership by fit",
        attack=class_in("membership", "MembershipByFit"),
        role="a party alone",
        needs="record and label of the person asked about",
        recovers="hardly more than chance: AUC .51 to .54 for logistic regression and networks",
        stops="a model that does not learn by heart; early stopping",
        does_not_stop="alignment; a threshold on the fit is the simplest such attack, and better "
        "ones were not tried",
        test=shown_in("membership", "test_models_of_weights_hardly_tell_who_trained_them"),
    ),
    Entry(
        name="Membership by stored rows",
        attack=class_in("membership", "MembershipByStoredRows"),
        role="a party alone",
        needs="the record of the person asked about, and a model that stores rows",
        recovers="AUC .57 (cancer) to .77 (digits), 22 to 45 % found at 1 % false alarms",
        stops="families of weights; the others are refused",
        does_not_stop="leaving labels out of the return",
        test=shown_in("membership", "test_stored_rows_tell_without_any_label"),
    ),
    Entry(
        name="Membership by a shared span",
        attack=class_in("membership", "MembershipBySpan"),
        role="a party alone",
        needs="one party's own span as the span of all (samespan conditions, never a real round)",
        recovers="who is in that party: exactly where n <= l; AUC .94 at n = 3 l, .77 at 6 l, .53 "
        "at 50 l",
        stops="a basis from public rows, a Haar basis, a consensus of many; n > 20 l",
        does_not_stop="the rotation E_i",
        test=shown_in("membership", "test_a_shared_span_of_one_party_tells_its_people_from_others"),
    ),
    Entry(
        name="Reflection in the consensus",
        attack=class_in("reflection", "Reflection"),
        role="several parties together",
        needs="all parties of a consensus but one; of two parties, either",
        recovers="the last party's span, exactly while its angles to the consensus are below 45 "
        "degrees",
        stops="one party more that does not help; two parties are refused",
        does_not_stop="the anchor, which every party has; the rotation E_i",
        test=shown_in("reflection", "test_all_but_one_get_the_last_span_exactly_below_45_degrees"),
    ),
    Entry(
        name="Another anchor",
        attack=class_in("poisoning", "AnotherAnchor"),
        role="a party that lies",
        needs="nothing: it knows the secret, so its anchor tag is right",
        recovers="nothing; the others lose 1.5 points, and five where it is the reference",
        stops="nothing; under an isometric anchor the evidence reads that it cannot tell",
        does_not_stop="the anchor tag, which finds honest mistakes only; the certificate, which "
        "accuses nobody",
        test=shown_in("poisoning", "test_another_anchor_passes_and_hurts_most_at_the_reference"),
    ),
    Entry(
        name="Another scale",
        attack=class_in("poisoning", "OtherScale"),
        role="a party that lies",
        needs="nothing; wrong units do the same",
        recovers="nothing; rows a thousand times too large leave everybody with chance",
        stops="the scale band, for rows, and for an anchor image scaled with them",
        does_not_stop="the band, where rows are at most 10 times too large: that costs two points",
        test=shown_in(
            "poisoning",
            "test_rows_and_image_scaled_together_ruin_the_model_and_are_refused",
        ),
    ),
    Entry(
        name="Wrong labels",
        attack=class_in("poisoning", "WrongLabels"),
        role="a party that lies",
        needs="nothing",
        recovers="nothing; of ten parties one costs the others two points, three eight",
        stops="nothing; a party that accepts is shown what the model is worth on its own rows",
        does_not_stop="the certificate: it does not look at labels",
        test=shown_in(
            "poisoning",
            "test_one_partys_wrong_labels_cost_little_three_parties_much_and_nothing_notices",
        ),
    ),
    Entry(
        name="Turned rows",
        attack=class_in("poisoning", "TurnedRows"),
        role="a party that lies",
        needs="nothing",
        recovers="nothing; costs about what wrong labels cost",
        stops="nothing; a party that accepts is shown what the model is worth on its own rows",
        does_not_stop="the certificate: image, lengths and distances are as they should be; "
        "evidence that cannot tell is no accusation",
        test=shown_in("poisoning", "test_turned_rows_cost_as_much_and_pass"),
    ),
)
