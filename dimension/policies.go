package dimension

import (
	"math/rand/v2"
	"strings"
)

// matter is a question of policy or of knowledge in one language: the text with
// places to fill, and the options. Of a policy the options permit, refuse, or do
// neither; of knowledge the first is right.
type matter struct {
	text    string
	options string // separated by "|"
}

// The options of a question of policy, and on which side of the line each lies.
var (
	verdicts = map[string]string{"en": "Yes|No|It cannot be said", "zh": "可以|不可以|无法确定"}
	sides    = []int{1, -1, 0}
)

// policies are rules with a number and a situation with another, so that nothing
// but reading decides.
var policies = map[string][]matter{
	"en": {
		{text: "A shop takes an unopened item back within {10-30} days. A customer wants to return an item after {5-40} days. May the customer return it?"},
		{text: "Please help me with a rule. The company pays for a trip if the hotel is cheap, at most {60-120} dollars a night. A colleague chose a hotel for {50-150} dollars. May the company pay?"},
		{text: "The rule says that a client can cancel a trip {2-9} days before it starts. The client wrote {1-12} days before. Is it allowed to cancel?"},
		{text: "In this library people can keep a film for {3-9} days. You returned the film after {2-12} days. Is that within the rule?"},
		{text: "A doctor may see a patient of {12-18} years without a parent. The patient is {10-20} years old and came alone. May the doctor begin?"},
		{text: "The warranty covers a fault of the phone for {12-36} months. The phone was bought {6-48} months ago. Must the store fix it?"},
		{text: "Staff need a permit for a car longer than {4-6} meters. My car is {3-7} meters long, and I have no permit. May I park it here?"},
		{text: "The fee is zero if they finish the job in {20-60} minutes. They need {15-80} minutes. Is it allowed to charge the fee?"},
	},
	"zh": {
		{text: "商店规定：购买后{10-30}天内的商品可以退还。顾客在{5-40}天后要求退还商品，请问是否允许？"},
		{text: "公司规定：酒店价格在{200-400}元以下可以报销。同事选择了{150-500}元的酒店，请问能否报销？"},
		{text: "客户需要在出发{2-9}天前通知才可以取消。客户提前{1-12}天通知，请问可以取消吗？"},
		{text: "图书馆的书可以借{7-30}天。读者已经借了{5-40}天，请问现在符合规定吗？"},
		{text: "银行允许客户每天取款{2000-5000}元。客户想要取款{1000-8000}元，请问可以办理吗？"},
		{text: "手机的保修期是{12-36}个月。顾客在{6-48}个月后说手机损坏了，请问可以保修吗？"},
		{text: "包裹的重量要在{10-20}公斤以内。我的包裹有{5-30}公斤，请问可以寄吗？"},
		{text: "如果快递晚到{2-5}天，顾客可以申请退款。快递晚到了{1-8}天，请问可以退款吗？"},
	},
}

// lore are questions that a child can answer, with one right option.
var lore = map[string][]matter{
	"en": {
		{"A customer needs a fruit. Which item should the shop choose?", "{apple|pear|banana}|{hammer|nail}|{chair|lamp}|{shoe|coat}"},
		{"Which of these animals is big?", "{elephant|whale}|{ant|flea}|{mouse|hamster}|{bee|fly}"},
		{"They need a quick way to reach a far city. Which one is fast?", "{plane|train}|{walking|crawling}|{a donkey|an ox}|{a raft|a cart}"},
		{"Which item do people often buy to write a letter?", "{pen|pencil}|{spoon|fork}|{pillow|blanket}|{onion|carrot}"},
		{"Please choose the thing that is cold.", "{ice|snow}|{fire|lava}|{boiling soup|hot tea}|{the sun|a flame}"},
		{"Perhaps a child asks what gives milk. Which reply is correct?", "{a cow|a goat}|{a stone|a brick}|{a clock|a key}|{a cloud|a star}"},
		{"Which of these colours does grass usually have?", "green|{purple|pink}|{black|grey}|{silver|gold}"},
		{"A traveller wants to see a large river. Which name is that of a river?", "{the Nile|the Danube|the Amazon}|{Mount Everest|Mont Blanc}|{the Sahara|the Gobi}|{Paris|Tokyo}"},
	},
	"zh": {
		{"顾客想要购买水果，请问应该选择哪种商品？", "{苹果|香蕉|梨}|{锤子|钉子}|{椅子|台灯}|{鞋子|外套}"},
		{"请问哪种动物体型最庞大？", "{大象|鲸鱼}|{蚂蚁|跳蚤}|{老鼠|仓鼠}|{蜜蜂|苍蝇}"},
		{"客户需要马上到很远的城市，请问如何最快？", "{飞机|高铁}|{步行|爬行}|{骑驴|骑牛}|{木筏|板车}"},
		{"写信的时候经常需要什么？", "{钢笔|铅笔}|{勺子|叉子}|{枕头|被子}|{洋葱|胡萝卜}"},
		{"请选择冰冷的东西。", "{冰|雪}|{火|岩浆}|{热汤|热茶}|{太阳|火焰}"},
		{"孩子询问什么可以产奶，应该如何回答？", "{奶牛|山羊}|{石头|砖头}|{钟表|钥匙}|{云朵|星星}"},
		{"请问草通常是什么颜色？", "绿色|{紫色|粉色}|{黑色|灰色}|{银色|金色}"},
		{"游客想要看一条大河，请问哪个是河的名字？", "{长江|黄河|尼罗河}|{泰山|珠穆朗玛峰}|{撒哈拉|戈壁}|{巴黎|东京}"},
	},
}

// matters makes n questions, of policy and of knowledge by turns.
func matters(r *rand.Rand, n int, languages []string) []closed {
	templates := make(map[string]int)
	for _, l := range languages {
		templates[l] = len(policies[l]) + len(lore[l])
	}
	return generated(r, n, languages, templates, func(l string, template, i int) closed {
		c := closed{id: caseID("matter", l, i), template: caseID("matter", l, template), language: l, kind: "policy", right: -1, line: sides}
		m := matter{options: verdicts[l]}
		if template < len(policies[l]) {
			m.text = policies[l][template].text
		} else {
			m, c.kind, c.right, c.line = lore[l][template-len(policies[l])], "knowledge", 0, nil
		}
		c.text = fill(r, m.text)
		c.options = strings.Split(fill(r, m.options), "|")
		c.shuffled(r)
		return c
	})
}
