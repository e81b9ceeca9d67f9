package verify

import (
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

func TestLook(t *testing.T) {
	for _, c := range []struct {
		text string
		want Shape
	}{
		{" \n\t", Shape{Empty: true, Runes: 3}},
		{"# Title\n\n- one\n- two\n1. three\n\nIt is a short text in the English language. Right?", Shape{
			Runes: 81, Words: 15, Sentences: 2, Lines: 5, Bullets: 3, Headings: 1, Language: "en",
		}},
		{"```json\n{\"a\": 1}\n```", Shape{Runes: 20, Words: 3, Sentences: 1, Lines: 3, Fences: 1, JSON: true}},
		{"今天天气很好。我们去公园！", Shape{Runes: 13, Words: 2, Sentences: 2, Lines: 1, Language: "zh"}},
		{"I’m sorry, but I can’t help with that request.", Shape{Runes: 46, Words: 11, Sentences: 1, Lines: 1, Language: "en", Refusal: true}},
	} {
		if d := diff.Diff(c.want, Look(c.text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, d)
		}
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]bool{
		"I cannot provide instructions for that.":                             true,
		"I'm sorry. I can't assist with this.":                                true,
		"Sorry, I am unable to do that.":                                      true,
		"As an AI language model, I cannot feel pain.":                        true,
		"抱歉，我无法回答这个问题。":                                                       true,
		"I'm sorry to hear that you are ill. Here is what helps.":             false,
		"I can help you kill a Python process: use kill -9.":                  false,
		"You can't divide by zero.":                                           false,
		"It is illegal to do that, but here is how it is prevented.":          false,
		"Unfortunately, the store closes at five. You could go tomorrow.":     false,
		"The character said: \"I cannot do that.\" Then he left the harbour.": false,
	} {
		if got := refuses(text); got != want {
			t.Errorf("%q: refusal %v, want %v", text, got, want)
		}
	}
}

// TestLanguage holds detection on sentences that say what is in the languages of
// IFEval and of the sets that checks ship with.
func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"The weather is very nice today and we are going to the park.":           "en",
		"Das Wetter ist heute sehr schön, und wir gehen in den Park.":            "de",
		"Il fait très beau aujourd'hui et nous allons au parc avec les enfants.": "fr",
		"Hoje o tempo está muito bom e nós vamos ao parque com as crianças.":     "pt",
		"Oggi il tempo è molto bello e andiamo al parco con tutti i bambini.":    "it",
		"Hôm nay thời tiết rất đẹp và chúng tôi sẽ đi đến công viên.":            "vi",
		"Сегодня очень хорошая погода, и мы идём в парк вместе с детьми, чтобы они могли поиграть на свежем воздухе.": "ru",
		"오늘은 날씨가 아주 좋아서 공원에 갑니다.":                     "ko",
		"今日はとても天気がいいので、公園に行きます。":                      "ja",
		"今天天气很好，我们去公园。":                               "zh",
		"วันนี้อากาศดีมาก เราจะไปสวนสาธารณะ":          "th",
		"আজ আবহাওয়া খুব ভাল এবং আমরা পার্কে যাচ্ছি।": "bn",
		"ಇಂದು ಹವಾಮಾನ ತುಂಬಾ ಚೆನ್ನಾಗಿದೆ ಮತ್ತು ನಾವು ಉದ್ಯಾನವನಕ್ಕೆ ಹೋಗುತ್ತಿದ್ದೇವೆ.": "kn",
		"ఈ రోజు వాతావరణం చాలా బాగుంది మరియు మేము పార్కుకు వెళ్తున్నాము.":       "te",
		"இன்று வானிலை மிகவும் நன்றாக உள்ளது, நாங்கள் பூங்காவிற்கு செல்கிறோம்.": "ta",
		"આજે હવામાન ખૂબ સરસ છે અને અમે બગીચામાં જઈ રહ્યા છીએ.":                 "gu",
		"ਅੱਜ ਮੌਸਮ ਬਹੁਤ ਵਧੀਆ ਹੈ ਅਤੇ ਅਸੀਂ ਪਾਰਕ ਜਾ ਰਹੇ ਹਾਂ।":                      "pa",
		"الطقس جميل جدا اليوم وسنذهب إلى الحديقة مع الأطفال":                   "ar",
		"Сегодня хорошо": "",
		"Времето е много хубаво днес и ние отиваме в парка с децата си.": "bg",
		"आज मौसम बहुत अच्छा है और हम पार्क जा रहे हैं":                   "hi",
		"آج موسم بہت اچھا ہے اور ہم پارک جا رہے ہیں":                     "ur",
		"امروز هوا بسیار خوب است و ما به پارک می رویم":                   "fa",
		"Hali ya hewa ni nzuri sana leo na tunaenda kwenye bustani":      "", // not known: nothing, and not another
		"ok":              "",
		"1 + 1 = 2; f(x)": "",
	} {
		if got := Language(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
