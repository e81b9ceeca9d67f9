package corpus

import (
	"math/rand/v2"
	"strings"
)

// Words returns synthetic English of about the given number of tokens: common
// words in random order, with a full stop after every 8 to 15 of them. Each
// word with the space before it, and each full stop, is one token of the
// byte-pair vocabularies r50k, cl100k and o200k, and of nearly every other
// vocabulary trained on English text. A server's own count may differ by what
// its chat template adds.
//
// The text is a pure function of the state of rng. A number of tokens below 1
// gives "".
func Words(rng *rand.Rand, tokens int64) string {
	return string(AppendWords(nil, rng, tokens))
}

// AppendWords appends the text of [Words] to b, for callers that build a prompt
// out of parts.
func AppendWords(b []byte, rng *rand.Rand, tokens int64) []byte {
	var bits uint64
	half := false
	draw := func(n uint64) uint64 {
		if half = !half; half {
			bits = rng.Uint64()
		} else {
			bits >>= 32
		}
		return (bits & 0xffffffff) * n >> 32
	}
	count := uint64(len(words))
	stop := int64(8 + draw(8))
	for i := int64(0); i < tokens; i++ {
		if stop == 0 {
			b = append(b, '.')
			stop = int64(8 + draw(8))
			continue
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, words[draw(count)]...)
		stop--
	}
	return b
}

// words are common English words. A change here changes every synthetic prompt
// of every plan.
var words = strings.Fields(`
the of and to in is for on with as by at from that this it be are was were has have had not but or an we you
they he she his her their its our my your one two three four five six seven eight nine ten first second third
last next new old good bad great small large big long short high low early late young right left same other
each every some many more most few less all both another such own only just also even still already always
never often once again soon then now here there where when why how what who which time year day week month
hour minute night morning evening summer winter spring today people man woman child family friend group team
member company business market price cost money bank trade work job office worker plan project program system
process method model data number result report study research test question answer problem idea fact case
point part place area region city town country state world house home room door window wall floor road street
bridge river water sea lake mountain field forest tree flower garden animal dog cat bird fish horse food bread
milk meat fruit sugar salt coffee tea table chair bed book page letter word name list line story paper news
school student teacher class course lesson university college music song film game sport player ball art
picture color light dark red blue green black white brown sound voice eye hand head face heart body foot arm
blood health doctor patient hospital treatment law court judge police government minister president party vote
public policy service rule order power force war peace army car bus train plane ship station airport travel
trip hotel map north south east west front back side top bottom center middle end start begin change move turn
run walk stand sit open close hold keep give take make build create write read speak talk say tell ask call
hear see look watch find lose win play learn teach know think believe understand remember forget feel want
need like love hope help try use show follow lead bring send receive pay buy sell spend save grow fall rise
drop cut break add join leave stay live die kill wait stop continue allow expect consider include offer
provide produce develop improve increase reduce support serve protect cover carry pass reach meet agree accept
decide choose claim describe explain discuss suggest important different possible likely certain clear simple
hard easy strong weak fast slow hot cold warm cool dry wet clean full empty rich poor free safe ready sure
true false real whole single common special general local national social political economic human natural
physical medical legal final main major recent current past future present available similar about after
before between during through under over into against without within across along around behind below above
near because although while since until unless if than though whether yet so very much too quite almost
perhaps maybe together away would could should will can may might must do does did done go went gone come came
get got let put set
`)
