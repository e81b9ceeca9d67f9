package dimension

import "math/rand/v2"

// intent is something that customers want, in the words of each language.
type intent struct {
	name   string            // the class
	domain string            // among the intents of which it is to be found
	say    map[string]string // what it is called, by language
	ask    map[string][]string
}

// intents are the classes of the check noise, with what customers say. The words are
// those of the trades, which dictation and input methods get wrong.
var intents = []intent{
	{
		"card_lost", "bank",
		map[string]string{"en": "report a lost card", "zh": "银行卡挂失"},
		map[string][]string{
			"en": {"I lost my credit card {yesterday|this morning|on the train}, please stop all payments.", "My debit card was stolen {today|last night}, I have to block it.", "Somebody took my wallet and the card is gone, what must I do?", "Block the card ending in {1000-9999}, it is missing since {Monday|Friday}."},
			"zh": {"我的信用卡{昨天|今天早上}丢了，请帮我冻结。", "银行卡被偷了，需要马上挂失。", "钱包不见了，里面的信用卡怎么办理挂失？", "尾号{1000-9999}的卡找不到了，想冻结账户。"},
		},
	},
	{
		"balance", "bank",
		map[string]string{"en": "ask for the balance", "zh": "查询余额"},
		map[string][]string{
			"en": {"How much money is in my savings account {now|today}?", "Please tell me the balance of my account.", "What is the current balance after the payment of {20-900} dollars?", "I want to see how much is left on my account {this week|today}."},
			"zh": {"请问我的账户余额还有多少？", "我想查询储蓄卡的余额。", "{今天|昨天}支付{20-900}元后账户里还剩多少钱？", "帮我看看卡里还有多少存款。"},
		},
	},
	{
		"transfer", "bank",
		map[string]string{"en": "send money", "zh": "转账汇款"},
		map[string][]string{
			"en": {"I would like to transfer {50-900} dollars to my {sister|landlord|colleague}.", "Send {50-900} euros from my savings to another account.", "How do I make a transfer to a foreign account?", "Please set up a monthly transfer of {50-900} dollars to my {son|mother}."},
			"zh": {"我想给{妈妈|房东|同事}转账{50-900}元。", "请帮我从储蓄账户汇款{50-900}元。", "怎么给国外的账户汇款？", "我需要设置每月自动转账{50-900}元。"},
		},
	},
	{
		"loan", "bank",
		map[string]string{"en": "ask about a loan", "zh": "咨询贷款"},
		map[string][]string{
			"en": {"What interest do you charge for a loan of {2000-9000} dollars?", "I want to take a mortgage for a {house|flat}, what are the terms?", "Can I pay back my loan before the end of the contract?", "How much could I borrow for a new {car|kitchen}, and at which interest?"},
			"zh": {"贷款{2000-9000}元的利息是多少？", "我想申请{房屋|汽车}贷款，需要什么材料？", "贷款可以提前还款吗？", "买{房子|车}能够借多少钱，利息怎么算？"},
		},
	},
	{
		"roaming", "phone",
		map[string]string{"en": "use the phone abroad", "zh": "国际漫游"},
		map[string][]string{
			"en": {"Does roaming cost extra in {Spain|Japan|Canada}?", "I travel to {France|Korea} next week and need roaming on my number.", "Why can I not make calls abroad with my contract?", "Please switch on international roaming for {3-14} days."},
			"zh": {"去{日本|韩国|法国}用手机漫游怎么收费？", "我下周出国，想开通国际漫游。", "在国外为什么打电话没有信号？", "请帮我开通{3-14}天的漫游套餐。"},
		},
	},
	{
		"plan", "phone",
		map[string]string{"en": "change the plan", "zh": "更改套餐"},
		map[string][]string{
			"en": {"I want a cheaper tariff with {5-40} gigabytes of data.", "Please move me to the {large|small|family} plan from next month.", "Which subscription has more data than mine?", "My data is used up too early, I would like another tariff."},
			"zh": {"我想换一个{5-40}G流量的便宜套餐。", "请从下个月把我的套餐改成{家庭|学生|商务}套餐。", "有没有流量更多的套餐？", "流量总是提前用完，想更改套餐。"},
		},
	},
	{
		"outage", "phone",
		map[string]string{"en": "report that the network is down", "zh": "网络故障"},
		map[string][]string{
			"en": {"My broadband has been down since {this morning|last night}.", "The router shows a red light and nothing loads.", "There is no signal in {the whole street|my office} today.", "The fibre connection breaks off every {5-40} minutes."},
			"zh": {"家里的宽带从{昨晚|今天早上}就断了。", "路由器亮红灯，网页打不开。", "今天{整条街|办公室}都没有信号。", "宽带每{5-40}分钟就断线。"},
		},
	},
	{
		"bill", "phone",
		map[string]string{"en": "ask about the bill", "zh": "话费账单"},
		map[string][]string{
			"en": {"Why is my phone bill {20-90} dollars higher this month?", "I do not understand a charge on the invoice of {March|June}.", "Please send me the bill of last month again.", "There is a fee of {5-40} dollars on my bill for a service that I never used."},
			"zh": {"这个月的话费账单为什么多了{20-90}元？", "我看不懂{三月|六月}账单里的这项费用。", "请把上个月的账单再发给我。", "账单里有{5-40}元的费用，我从来没有用过这个服务。"},
		},
	},
	{
		"refund", "shop",
		map[string]string{"en": "get the money back", "zh": "申请退款"},
		map[string][]string{
			"en": {"I returned the {shoes|lamp|coat} {5-20} days ago, where is my refund?", "The {kettle|radio} is broken, I want my money back.", "How long does a refund to my card take?", "You charged me for {two|three} items, please refund one payment."},
			"zh": {"{鞋子|台灯|外套}{5-20}天前就退货了，退款什么时候到？", "{水壶|收音机}坏了，我要退款。", "退款到信用卡要多久？", "订单被重复扣款，请退还多收的钱。"},
		},
	},
	{
		"delivery", "shop",
		map[string]string{"en": "ask where the parcel is", "zh": "查询物流"},
		map[string][]string{
			"en": {"Where is my parcel, it should have arrived {on Monday|yesterday}?", "The courier says delivered but nothing is here.", "When will the order with the {chair|bicycle|phone} be delivered?", "Can I follow the delivery of my package from {Berlin|Madrid}?"},
			"zh": {"我的快递{周一|昨天}就该到了，现在在哪里？", "物流显示已签收，但是我没有收到包裹。", "{椅子|自行车|手机}的订单什么时候送到？", "怎么查询从{北京|上海}发出的快递？"},
		},
	},
	{
		"voucher", "shop",
		map[string]string{"en": "use a voucher", "zh": "使用优惠券"},
		map[string][]string{
			"en": {"The voucher is refused at the checkout, why?", "How do I use a coupon of {5-30} dollars for my order?", "My discount code from the {newsletter|birthday card} does nothing.", "Can two vouchers be used for one order?"},
			"zh": {"结账时优惠券不能使用，为什么？", "{5-30}元的优惠券怎么用在订单上？", "{生日|新人}优惠券输入后没有反应。", "一个订单可以用两张优惠券吗？"},
		},
	},
	{
		"invoice", "shop",
		map[string]string{"en": "get an invoice", "zh": "开发票"},
		map[string][]string{
			"en": {"I need an invoice with the name of my company for the order of {March|May}.", "Please send me a receipt for the {printer|desk}.", "The invoice has a wrong address, can you write a new one?", "My accountant wants the invoice of {100-900} dollars as a document."},
			"zh": {"{三月|五月}的订单需要开公司抬头的发票。", "请给我开{打印机|书桌}的发票。", "发票的地址写错了，可以重新开吗？", "会计需要{100-900}元的电子发票。"},
		},
	},
}

// utterances makes n messages of customers, each with the intents of its domain to
// choose from.
func utterances(r *rand.Rand, n int, languages []string) []closed {
	templates := make(map[string]int)
	for _, l := range languages {
		templates[l] = len(intents) * len(intents[0].ask[l])
	}
	return generated(r, n, languages, templates, func(l string, template, i int) closed {
		k := template % len(intents)
		in := intents[k]
		c := closed{id: caseID("intent", l, i), template: caseID(in.name, l, template/len(intents)), language: l, kind: in.domain}
		c.text = fill(r, in.ask[l][template/len(intents)])
		for j, o := range intents {
			if o.domain == in.domain {
				if j == k {
					c.right = len(c.options)
				}
				c.options = append(c.options, o.say[l])
			}
		}
		c.shuffled(r)
		return c
	})
}
