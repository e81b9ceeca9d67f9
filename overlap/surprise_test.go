package overlap

import (
	"math"
	"testing"
)

// The figures of SelfCheckGPT's README, and the same with all digits from the code
// of the original over the tokens \w+|[^\w\s].
func TestSurprisedAgreesWithPublished(t *testing.T) {
	sentences := []string{"Michael Alan Weiner (born March 31, 1942) is an American radio host.", "He is the host of The Savage Nation."}
	s, err := Surprised(sentences[0]+" "+sentences[1], sentences, []string{
		"Michael Alan Weiner (born March 31, 1942) is an American radio host. He is the host of The Savage Country.",
		"Michael Alan Weiner (born January 13, 1960) is a Canadian radio host. He works at The New York Times.",
		"Michael Alan Weiner (born March 31, 1942) is an American radio host. He obtained his PhD from MIT.",
	})
	if err != nil || len(s.Sentences) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, c := range []struct {
		what      string
		got, want float64
		published float64
	}{
		{"first sentence, mean", s.Sentences[0].Mean, 3.1843124277261565, 3.184312},
		{"second sentence, mean", s.Sentences[1].Mean, 3.279774864365169, 3.279774},
		{"first sentence, most", s.Sentences[0].Most, 3.4760986898352733, 3.476098},
		{"second sentence, most", s.Sentences[1].Most, 4.574710978503383, 4.574710},
		{"answer, mean", s.Mean, 3.218678904916201, 3.218678904916201},
		{"answer, mean of most", s.Most, 4.025404834169327, 4.025404834169327},
	} {
		if math.Abs(c.got-c.want) > 1e-9 || math.Abs(c.got-c.published) > 1e-6 {
			t.Errorf("%s: %v, want %v; published is %v", c.what, c.got, c.want, c.published)
		}
	}
}

func TestSurprisedRefuses(t *testing.T) {
	for _, c := range []struct {
		answer             string
		sentences, samples []string
	}{
		{"a b", []string{"a b"}, nil}, {" ", []string{" "}, []string{"a"}}, {"", nil, []string{"a"}}, {"a b", []string{"c"}, []string{"a"}},
	} {
		if s, err := Surprised(c.answer, c.sentences, c.samples); err == nil {
			t.Errorf("%+v is scored %+v", c, s)
		}
	}
	same, err := Surprised("红色的", []string{"红色的"}, []string{"红色的"})
	if err != nil || math.Abs(same.Mean-math.Log(3)) > 1e-12 {
		t.Errorf("three characters, each a third of all words: %+v, %v", same, err)
	}
	other, err := Surprised("红色的", []string{"红色的"}, []string{"蓝绿白"})
	if err != nil || other.Mean <= same.Mean {
		t.Errorf("an answer that no sample shares is less surprising: %v and %v, %v", other.Mean, same.Mean, err)
	}
}

// TestZippedSentencesAreNoCorpus has two texts of which ragas' BleuScore makes 1.0: it
// splits both at ". " and scores as many pieces as zip gives. Only the first sentence is right.
func TestZippedSentencesAreNoCorpus(t *testing.T) {
	const (
		reference = "The cat sat on the mat today. The dog ate the whole bone. It was a very sunny day"
		response  = "The cat sat on the mat today. zzz qqq. xxx yyy www"
	)
	tally, err := NewTally(BLEU{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tally.Add(Segment{Hypothesis: response, References: []string{reference}}); err != nil {
		t.Fatal(err)
	}
	if got, err := tally.Score(); err != nil || math.Abs(got/100-0.32122318232464164) > 1e-9 {
		t.Errorf("BLEU %v, %v; want 32.122", got, err)
	}
}
