"""Rows of traffic as they come into the Shapes page: typed, pasted and uploaded."""

from tests.ui.test_shapes_page import said, sound, viewing_only, visit  # noqa: F401  # the fixture belongs to every page test


def test_an_uploaded_log_fills_the_rows():
    page = visit(kind="traffic")
    page.file_uploader(key="shape:csv").upload("log.csv", b"batch,seq,count\n4,64,10\n8,64,5\n", "text/csv").run()
    assert sound(page).text_area(key="shape:traffic rows").value == "batch,seq,count\n4,64,10\n8,64,5\n"
    assert any("Not run yet" in text and "2 points" in text for text in said(page, "warning"))
    page.file_uploader(key="shape:csv").upload("log.csv", b"\xff\xfe\x00bad", "text/csv").run()
    assert any("no text in UTF-8" in text for text in said(sound(page), "warning"))
    page.text_area(key="shape:traffic rows").set_value("4,64,10").run()
    page.file_uploader(key="shape:csv").upload("empty.csv", b" \n", "text/csv").run()
    assert any("The file is empty" in text for text in said(sound(page), "warning"))
    assert page.text_area(key="shape:traffic rows").value == "4,64,10"


def test_rows_may_part_their_cells_by_semicolons():
    page = visit(kind="traffic", layer="linear")
    page.text_area(key="shape:traffic rows").set_value("batch;seq;count\n1;4;3\n2;4;5").run()
    assert any("Not run yet" in text and "2 points" in text for text in said(sound(page), "warning"))
    page.selectbox(key="shape:layer").set_value("swiglu_mlp").run()
    assert any("SwiGLU" in text and "2 points" in text for text in said(sound(page), "warning"))


def test_a_bad_row_is_named_by_its_line():
    page = visit(kind="traffic", layer="linear")
    page.text_area(key="shape:traffic rows").set_value("1,4,3\n\n2,4\n7").run()
    assert any("Row 4 ('7') is not batch, seq, count" in text for text in said(sound(page), "warning"))
