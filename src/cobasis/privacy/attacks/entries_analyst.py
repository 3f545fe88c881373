"""Attacks of whoever opens an upload, and of the analyst alone."""

from cobasis.privacy.attacks.entry import Entry, class_in, shown_in

ENTRIES = (
    Entry(
        name="Structure",
        attack=class_in("structure", "StandingAlone"),
        role="whoever opens an upload",
        needs="nothing",
        recovers="who is near whom, who is whose duplicate, who stands alone: of each person's ten "
        "nearest 83 % are kept (digits, l = 16), 89 % (cancer, l = 10)",
        stops="noise; few components blur it (digits, l = 4: 38 %)",
        does_not_stop="the secret basis, its rotation, shuffled rows",
        test=shown_in("structure", "test_distances_and_neighbours_survive_projection"),
    ),
    Entry(
        name="ICA on the anchor image",
        attack=class_in("anchor_ica", "AnchorIca"),
        role="whoever opens an upload",
        needs="an anchor of independent, not Gaussian entries, such as uniform ones",
        recovers="the secret basis: cancer, l = m = 30, 5,000 anchor rows, everybody re-identified",
        stops="the isometric and the Gaussian anchor: both stay at chance",
        does_not_stop="a long secret; fewer components only slow it down",
        test=shown_in("anchor_ica", "test_a_uniform_anchor_shows_every_record_at_full_width"),
    ),
    Entry(
        name="Mean of the anchor image",
        attack=class_in("anchor_ica", "AnchorMean"),
        role="whoever opens an upload",
        needs="an anchor whose entries have a mean, such as uniform ones",
        recovers="the sum of each raw row, nearly exactly",
        stops="the isometric and the Gaussian anchor, whose entries have mean 0",
        does_not_stop="a long secret, few components",
        test=shown_in("anchor_ica", "test_the_mean_row_of_a_uniform_anchor_shows_the_row_sums"),
    ),
    Entry(
        name="A badly drawn isometry",
        attack=class_in("bad_haar", "TypicalAnchor"),
        role="whoever opens an upload",
        needs="a program that draws its isometric anchor by another recipe, and reads like ours",
        recovers="entries or span of the secret basis, from the anchor image alone",
        stops="Stewart's construction to the letter",
        does_not_stop="a long secret; that A' A = I and the accuracy are right",
        test=shown_in("bad_haar", "test_every_shortcut_lets_entries_of_the_basis_be_read"),
    ),
    Entry(
        name="Guessed seed",
        attack=class_in("guessed_seed", "GuessedSeed"),
        role="whoever opens an upload",
        needs="an anchor drawn from a seed that can be tried: an integer, a date, a word",
        recovers="the anchor, and with it all that collusion does; a million seeds take minutes",
        stops="32 bytes from the system's generator, which is all that the library takes",
        does_not_stop="hashing a short seed; a better anchor",
        test=shown_in("guessed_seed", "test_a_small_seed_gives_all_that_collusion_gives"),
    ),
    Entry(
        name="Public sample",
        attack=class_in("public_sample", "PublicSample"),
        role="the analyst alone",
        needs="some hundred records of the same kind, of other people; labels help much",
        recovers="digits, l = 16: R2 .81, 91 % re-identified with labels, 52 % without",
        stops="a Haar basis, if no labels travel with it: then it is chance; noise",
        does_not_stop="the anchor, which is not needed; a Haar basis with labels (digits, l = 16: "
        "85 % linked); more parties, which reveal more about each",
        test=shown_in(
            "public_sample", "test_a_public_sample_gets_at_least_what_the_notes_measured"
        ),
    ),
    Entry(
        name="Known records",
        attack=class_in("known_records", "KnownRecords"),
        role="the analyst alone",
        needs="raw records of some of the party's people, and which rows are theirs",
        recovers="everybody else's, the better the more are known: digits, l = 16, R2 .58 and 39 % "
        "re-identified with 16 known, .73 and 74 % with 32",
        stops="many components per known person; noise",
        does_not_stop="the secret basis, its rotation",
        test=shown_in("known_records", "test_known_records_get_what_the_notes_measured"),
    ),
    Entry(
        name="Candidates without a basis",
        attack=class_in("linkage", "CandidatesAlone"),
        role="the analyst alone",
        needs="a list of raw records on which the party's people stand among others; no labels",
        recovers="who each row is, and by that the basis: everybody (digits, l = 16, 300 people on "
        "a list of 1,797; cancer, l = 5, 280 of 569; Fashion-MNIST, l = 10 and 100, 500 of 1,000)",
        stops="a Haar basis (at most 5 % right, lists twice as long as the party); few people and "
        "components on a long list; noise",
        does_not_stop="the anchor, which is not needed; a list that half of the people are not on; "
        "a basis from public rows",
        test=shown_in(
            "linkage",
            "test_a_list_alone_names_everybody_where_the_basis_is_the_partys_own_svd",
        ),
    ),
    Entry(
        name="Same person in two hospitals",
        attack=class_in("linkage", "SamePerson"),
        role="the analyst alone",
        needs="nothing: it aligns the uploads anyway",
        recovers="which rows of two parties are one person: all of them, also with 5 % error of "
        "measurement; AUC above .94 for who is in both at all",
        stops="noise, drawn anew at each party",
        does_not_stop="own spans, shuffled rows",
        test=shown_in("linkage", "test_who_was_in_two_hospitals_is_found_in_both"),
    ),
    Entry(
        name="Attribute inference",
        attack=class_in("attribute", "KnownAttribute"),
        role="the analyst alone",
        needs="one fact of some people, and which rows are theirs",
        recovers="whether each other person is above the median: with 20 known AUC .90 (cancer, "
        "l = 5), .83 (digits, l = 8); labels alone .70",
        stops="noise; fewer components, for facts that the leading ones do not show",
        does_not_stop="the secret basis: a rotation changes nothing",
        test=shown_in("attribute", "test_a_few_known_people_give_everybodys_attribute_away"),
    ),
    Entry(
        name="Public anchor",
        attack=class_in("public_anchor", "PublicAnchor"),
        role="the analyst alone",
        needs="the collection that the anchor's rows were taken from",
        recovers="which rows they are, all of them, and by that all that collusion recovers",
        stops="an anchor that is drawn and not chosen",
        does_not_stop="a large collection; a secret choice from it",
        test=shown_in(
            "public_anchor",
            "test_every_anchor_row_of_digits_is_identified_and_the_result_is_collusions",
        ),
    ),
    Entry(
        name="Difference of two uploads",
        attack=class_in("difference", "Difference"),
        role="the analyst alone",
        needs="an earlier upload of the same party",
        recovers="the row of the one person who came, or who left, in every run",
        stops="changing more than 10 rows and 5 % at once, or none",
        does_not_stop="shuffled rows; a new span, which shows more",
        test=shown_in("difference", "test_the_one_who_came_is_isolated_in_every_run"),
    ),
)
