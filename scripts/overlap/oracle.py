"""Scores random and hostile texts with sacrebleu and rouge_score.

    oracle.py SEED FROM TO      a line of JSON for each pair of these numbers
    oracle.py runes             a line for each character that both know
    oracle.py time FILE         CPU seconds of each metric on a corpus

The Go package overlap must give the same numbers. Pair i of a seed is the same
in whatever range it is asked for.
"""

import json
import logging
import random
import sys
import time
import unicodedata

import regex
from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU, CHRF, TER

logging.disable(logging.CRITICAL)

BLEUS = [
    *({"tokenize": t} for t in ("13a", "none", "zh", "intl", "char")),
    *({"tokenize": "13a", "smooth_method": m, "smooth_value": v} for m, v in
      (("none", None), ("floor", None), ("floor", 0.5), ("add-k", None), ("add-k", 2))),
    {"tokenize": "13a", "effective_order": True},
    {"tokenize": "13a", "lowercase": True},
    {"tokenize": "intl", "lowercase": True, "effective_order": True},
    {"tokenize": "zh", "effective_order": True, "smooth_method": "floor"},
    {"tokenize": "13a", "max_ngram_order": 2},
    {"tokenize": "char", "max_ngram_order": 6},
    {"tokenize": "none", "effective_order": True, "smooth_method": "floor", "smooth_value": 0.01},
]
CHRFS = [
    {}, {"word_order": 2}, {"word_order": 1}, {"beta": 3}, {"beta": 1}, {"eps_smoothing": True}, {"whitespace": True},
    {"lowercase": True, "word_order": 2}, {"char_order": 4, "word_order": 2, "eps_smoothing": True},
]
TERS = [
    {}, {"normalized": True}, {"no_punct": True, "asian_support": True}, {"case_sensitive": True}, {"normalized": True, "asian_support": True},
    {"normalized": True, "no_punct": True, "asian_support": True, "case_sensitive": True},
]
ROUGES = [{"type": t, "stem": s} for s in (False, True) for t in ("1", "2", "3", "L", "Lsum")]

# Older Pythons know fewer characters; these all know.
KNOWN = unicodedata.ucd_3_2_0


def runes(*ranges):
    return [chr(c) for a, b in ranges for c in range(a, b + 1) if KNOWN.category(chr(c)) not in ("Cn", "Cs", "Co")]


ASCII = [chr(c) for c in range(0x20, 0x7f)]
CLASSES = [
    ASCII,
    list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    list("0123456789.,-"),
    list(" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000\ufeff\u200b"),
    runes((0xa1, 0x17f)),
    runes((0x370, 0x3ff)) + list("ΣΣΣΣ'.·\u0301\u02b0"),
    runes((0x400, 0x45f)),
    runes((0x5d0, 0x5ea), (0x620, 0x669)),
    runes((0x900, 0x97f), (0xe01, 0xe5b)),
    runes((0x300, 0x36f)),
    runes((0x2000, 0x2bff)),
    runes((0x2e80, 0x30ff), (0x3100, 0x33ff)),
    runes((0x3400, 0x3420), (0x4e00, 0x4e80), (0x9f90, 0x9fa5), (0xf900, 0xf910)),
    runes((0xac00, 0xac20), (0xff01, 0xffee), (0xfe30, 0xfe4f), (0xfe10, 0xfe1f)),
    runes((0x20000, 0x20020), (0x2f800, 0x2f810), (0x1d400, 0x1d420)),
    list("😀👍🏽👩\u200d💻🇩🇪✅©®™…—–“”„‘’«»¡¿"),
    list("İıIiſKÅẞßΣσςǅǆŉ"),
]
ODD = ["&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "&amp;amp;quot;", "&apos;", "<skipped>", "<skip<skipped>ped>", "-\n", "\n-", "\n",
       "'s ", "'s", "1,000.50", "3.14", "..", "...", "a.b", ".5", "5.", "1-2", "-1", "--", "e.g.", "U.S.", "(hi)", "!?", "…", "“x”", "\u2014",
       "2024-05-01", "$1", "50%", "x\x1cy", "\x1f", "\xa0", "\u3000", "İ", "ΑΣ", "Σ", "ΑΣ'Σ", "你好，世界", "、", "。", "カタカナ", "ひらがな", "한국어"]
STEMS = ["sk", "d", "l", "agre", "plaster", "motor", "conflat", "troubl", "siz", "hopp", "fall", "hiss", "fil", "happ", "enjo", "rel", "condition", "valenc",
         "digit", "conform", "radic", "differ", "vile", "analog", "vietnam", "oper", "feud", "decis", "hope", "callous", "formal", "sensit", "tripl", "electr",
         "good", "reviv", "allow", "infer", "airlin", "gyroscop", "adjust", "defens", "irrit", "replac", "depend", "adopt", "homolog", "commun", "activ",
         "angular", "effect", "bowdler", "probat", "rat", "ceas", "controll", "roll", "ge", "the", "archae", "yyyy", "syzyg", "x1", "say", "proceed", "sky",
         "dy", "inning", "outing", "canning", "howe", "succeed", "exceed", "new", "spy", "tr", "o", "a", "eed", "w", "b0", "queu"]
ENDS = ["", "s", "es", "ies", "sses", "ss", "ed", "eed", "ied", "ing", "at", "bl", "iz", "ated", "y", "ly", "ational", "tional", "enci", "anci", "izer", "bli", "abli",
        "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "fulli", "logi",
        "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion",
        "ion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "ll", "lled", "alling", "ying", "ys", "yed", "1", "00s", "logically", "ally", "fully"]


def soup(r, n):
    kinds = r.sample(CLASSES, r.randrange(1, 5))
    return "".join(r.choice(r.choice(kinds)) if r.random() > 0.15 else r.choice(ODD + [" "]) for _ in range(n))


def words(r, n):
    how = r.randrange(5)
    if how == 0:
        pool = [chr(97 + i) for i in range(r.randrange(1, 6))]
    elif how == 1:
        pool = [r.choice(STEMS) + r.choice(ENDS) for _ in range(r.randrange(2, 60))]
    elif how == 2:
        pool = [soup(r, r.randrange(1, 5)) for _ in range(r.randrange(2, 20))] + ODD
    elif how == 3:
        pool = [r.choice(CLASSES[12]) for _ in range(r.randrange(2, 40))] + list("，。！a1")
    else:
        pool = "The the a of and man dog bit had was just 1,000 3.5 U.S. it's (well) no! Yes? re-do end. end, \"so\"".split()
    return [r.choice(pool) for _ in range(n)]


def join(r, w):
    sep = r.choice([" ", " ", " ", " ", "  ", "", "\t", "\n", " \n"])
    return "".join(x + (sep if r.random() > 0.05 else r.choice([" ", "\n", "\u3000", "\x1c", ". "])) for x in w)


def edited(r, w):
    """What a system may make of a reference: words lost, added, changed, moved."""
    w = list(w)
    for _ in range(r.choice([0, 1, 1, 2, 3, 5, 8, 1 + len(w) // 3])):
        if not w:
            break
        i, n = r.randrange(len(w)), r.randrange(1, 13)
        how = r.randrange(6)
        if how == 0:
            del w[i:i + n]
        elif how == 1:
            w[i:i] = words(r, r.randrange(1, 4))
        elif how == 2:
            w[i] = r.choice(w)
        elif how == 3:
            w[i] = w[i].swapcase()
        else:
            part = w[i:i + n]
            del w[i:i + n]
            j = r.randrange(len(w) + 1)
            w[j:j] = part
    return w


def length(r):
    x = r.random()
    if x < 0.85:
        return r.randrange(0, 31)
    if x < 0.985:
        return r.randrange(30, 90)
    return r.randrange(90, 200)


def pair(r, i):
    """One text and its references."""
    if i % 1000 == 999:
        n = r.randrange(1000, 2500)
        w = words(r, n)
        return join(r, edited(r, w) if r.random() < 0.5 else words(r, n)), [join(r, w)]
    how = r.randrange(10)
    n = length(r)
    if how < 6:
        w = words(r, n)
        refs = [w] + [edited(r, w) for _ in range(r.choice([0, 0, 0, 0, 1, 2]))]
        return join(r, edited(r, r.choice(refs))), [join(r, x) for x in refs]
    if how == 6:
        return soup(r, 3 * n), [soup(r, 3 * n) for _ in range(r.choice([1, 1, 2]))]
    if how == 7:
        s = soup(r, 3 * n)
        cut = r.randrange(len(s) + 1)
        return s[cut:] + s[:cut], [s]
    if how == 8:
        t = r.choice(["a", "the", "你", "İ", "!", "1.", "😀"])
        return t * n if r.random() < 0.3 else " ".join([t] * n), [" ".join([t] * length(r) + words(r, r.randrange(3)))]
    empty = ["", " ", "\n", "\x1c", "\xa0\u3000", "\u200b"]
    some = [*empty, join(r, words(r, n))]
    return r.choice(some), [r.choice(some) for _ in range(r.randrange(1, 3))]


def main(seed, start, stop):
    bleus, chrfs, ters = [BLEU(force=True, **c) for c in BLEUS], [CHRF(**c) for c in CHRFS], [TER(**c) for c in TERS]
    plain = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"])
    stem = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"], use_stemmer=True)
    print(json.dumps({"bleu": BLEUS, "chrf": CHRFS, "ter": TERS, "rouge": ROUGES}))
    for i in range(start, stop):
        hyp, refs = pair(random.Random(seed * 1_000_003 + i), i)
        streams = [[x] for x in refs]
        # Its edit distance takes seconds for a hundred words, and minutes for thousands.
        longest = max(len(x) // 4 if m.normalized else len(x.split()) for m in ters for x in [hyp, *refs])
        some = longest <= 50 or longest <= 400 and i % 20 == 0
        ter = [m.corpus_score([hyp], streams).score for m in ters] if some else []
        rouge = []
        for scorer in (plain, stem):
            best = scorer.score_multi(refs, hyp)
            rouge += [list(best["rouge" + t]) for t in ("1", "2", "3", "L", "Lsum")]
        print(json.dumps({
            "hyp": hyp, "refs": refs,
            "bleu": [m.corpus_score([hyp], streams).score for m in bleus],
            "chrf": [m.corpus_score([hyp], streams).score for m in chrfs],
            "ter": ter, "rouge": rouge,
        }))


def table():
    classes = [(k, regex.compile(r"\p{%s}" % k)) for k in "PSN"]
    for c in range(0x110000):
        s = chr(c)
        if KNOWN.category(s) in ("Cn", "Cs", "Co"):
            continue
        print(json.dumps({
            "rune": c, "class": "".join(k for k, x in classes if x.match(s)), "space": not s.split(), "lower": s.lower(),
            "passed": ("a" + s + "Σ").lower().endswith("ς"),
        }))


def timed(path):
    """CPU seconds, with the metrics that bench.go asks for."""
    with open(path) as f:
        corpus = [json.loads(line) for line in f]
    hyps, refs = [x["hyp"] for x in corpus], [x["ref"] for x in corpus]
    out = {}
    for name, m in (("BLEU", BLEU()), ("chrF2", CHRF()), ("chrF2++", CHRF(word_order=2)), ("TER", TER())):
        start = time.process_time()
        score = m.corpus_score(hyps, [refs]).score
        out[name] = [time.process_time() - start, score]
    for t in ("1", "2", "L", "Lsum"):
        scorer = rouge_scorer.RougeScorer(["rouge" + t], use_stemmer=True)
        start = time.process_time()
        score = sum(scorer.score(r, h)["rouge" + t].fmeasure for h, r in zip(hyps, refs)) / len(hyps)
        out["ROUGE-" + t] = [time.process_time() - start, score]
    print(json.dumps(out))


if sys.argv[1] == "runes":
    table()
elif sys.argv[1] == "time":
    timed(sys.argv[2])
else:
    main(*map(int, sys.argv[1:]))
