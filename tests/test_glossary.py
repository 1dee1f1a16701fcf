"""Every word that a page explains has its sentence, and every sentence is on some page."""

import re
from pathlib import Path

import pytest

from core.glossary import GLOSSARY, explain, explain_row

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "core" / "ui").glob("*.py")]


def words_on_pages():
    """The words in calls of explain() on pages, lower-case."""
    found = set()
    for path in PAGES:
        text = path.read_text()
        for call in re.findall(r"explain\(((?:[^()]|\([^()]*\))*)\)", text):
            found |= {word.lower() for word in re.findall(r"""["']([^"']+)["']""", call)}
    return found


def test_every_word_on_a_page_has_its_sentence():
    assert words_on_pages() <= set(GLOSSARY)


def test_every_sentence_is_on_a_page():
    assert set(GLOSSARY) - words_on_pages() == set()


@pytest.mark.parametrize("word", GLOSSARY)
def test_a_sentence_is_one_and_short(word):
    sentence = explain(word)
    assert sentence[0].isupper() and sentence.endswith(".")
    assert 20 < len(sentence) < 240


def test_rows_of_a_profile_are_explained():
    assert "guards" in explain_row("TorchDynamo Cache Lookup")
    assert explain_row("aten::t") and explain_row("aten::t") != explain_row("aten::transpose")
    assert explain_row("aten::tanh") is None
