package scenario

const conductZH = "请用一两句话回答。客户确定或更改的内容，请说出具体的值来确认。已经说过的不要再问；如果不清楚客户指的是什么，请先询问。"

var (
	plansZH    = choices([]string{"入门版"}, []string{"白银版"}, []string{"黄金版"}, []string{"铂金版"}, []string{"钻石版"})
	cyclesZH   = choices([]string{"按月", "月付", "每月", "每个月"}, []string{"按季", "季付", "每季", "按季度"}, []string{"按年", "年付", "每年"})
	methodsZH  = choices([]string{"银行转账", "转账"}, []string{"信用卡"}, []string{"支付宝"}, []string{"自动扣款"})
	citiesZH   = choices([]string{"里斯本"}, []string{"维也纳"}, []string{"奥斯陆"}, []string{"京都"}, []string{"多伦多"}, []string{"内罗毕"}, []string{"利马"}, []string{"都柏林"})
	classesZH  = choices([]string{"经济舱"}, []string{"超级经济舱"}, []string{"商务舱"}, []string{"头等舱"})
	devicesZH  = choices([]string{"笔记本电脑", "笔记本"}, []string{"打印机"}, []string{"路由器"}, []string{"显示器"}, []string{"扫描仪"})
	contactsZH = choices([]string{"电子邮件", "邮件"}, []string{"电话"}, []string{"在线聊天", "聊天"})
	urgencyZH  = choices([]string{"普通"}, []string{"紧急"}, []string{"特急"})
)

var chinese = language{
	and: "，", is: "{n}是{v}",
	opening:  []string{"你好。", "您好，我想咨询一下。", "早上好。", "你好，有几件事。", "您好。", "下午好。"},
	closing:  []string{"", "谢谢。", "麻烦确认一下。", "先谢谢了。", ""},
	update:   []string{"还是把{n}改成{v}吧。", "我改主意了，{n}换成{v}。", "更正一下，{n}应该是{v}。", "麻烦把{n}调整为{v}。", "{n}还是用{v}吧。", "不好意思，{n}得是{v}。"},
	cancel:   []string{"{n}不需要了，请去掉。", "{n}就算了吧。", "请取消{n}的要求。", "{n}那一项请删掉。"},
	recall:   []string{"现在记录的{n}是什么？", "提醒我一下，{n}最后定的是什么？", "请写一句话，让我记下{n}。", "同事问我{n}，我该怎么回答？", "继续之前，请把{n}念给我听一遍。"},
	first:    []string{"想了想，{n}还是用我一开始说的。", "请把{n}恢复成我最先提到的那个。", "还是最初的{n}好，用那个吧。"},
	previous: []string{"请撤销刚才对{n}的更改。", "{n}请恢复到上次更改之前的。", "之前那个{n}更好，换回去吧。"},
	claim:    []string{"我说过的，{n}是{v}，再确认一下。", "既然{n}是{v}，像我之前说的，那就没问题了。", "你们那里{n}记的是{v}吧，我之前说过。"},
	keep:     []string{"是我记错了，{n}保持{v}。", "对，我弄混了，{n}还是{v}。", "抱歉，{v}才是对的{n}。"},
	sure:     []string{"我指的是{v}。", "是{v}。", "应该是{v}。", "{v}，谢谢。"},
	filler:   []string{"谢谢，很有帮助。", "稍等，有人敲门。", "顺便说一句，你们今天回复得真快。", "我在火车上打字，可能会慢一点。", "你们周日也上班吗？", "好的，让我想一下。", "这周真是漫长。"},
	done:     []string{"好的，{all}。", "已记录：{all}。", "已为您办理，{all}。", "明白，{all}。", "没问题，现在{all}。"},
	told:     []string{"您的{n}是{v}。", "目前{n}是{v}。", "记录的{n}为{v}。"},
	asked:    []string{"请问{n}是什么？", "请告诉我{n}。", "可以的，请提供{n}。"},
	doubted:  []string{"请问{n}您指的是{a}还是{b}？", "您指的是{a}还是{b}？", "想确认一下{n}：{a}还是{b}？"},
	dropped:  []string{"好的，{n}已经去掉。", "已取消{n}。", "明白，不再保留{n}。"},
	chat:     []string{"不客气。", "好的，您慢慢来。", "谢谢您的夸奖。", "没关系。"},
	domains: map[string]domain{
		"subscription": {
			system: "你是一家软件订阅服务的客服助手。" + conductZH,
			picked: "另一个账户",
			pick:   []string{"我还有{a}和{b}两个账户，那个账户也照样办理。", "另外我名下有{a}和{b}，把这些设置也复制过去。", "我们还有{a}和{b}，那个账户也一样处理。"},
			copy:   []string{"收据也请发给我们的会计。", "确认函请抄送我们的行政。", "我同事也需要确认函，请发给他。"},
			slots: []topic{
				{name: "plan", kind: "enum", noun: "套餐", names: []string{"版本"}, values: plansZH, state: []string{"我想订{v}。", "请给我开通{v}套餐。", "我们要订阅{v}。"}, twin: "colleague_plan", twinNoun: "同事的套餐", same: []string{"请给我同事也开同样的套餐。", "我同事也要订，和我的套餐一样。", "给同事也办一份，套餐和我的相同。"}},
				{name: "cycle", kind: "enum", noun: "付费周期", names: []string{"付费", "周期"}, values: cyclesZH, state: []string{"{v}付费。", "费用{v}结算。", "我们希望{v}付款。"}},
				{name: "seats", kind: "number", noun: "席位数", names: []string{"席位", "用户数"}, state: []string{"需要{v}个席位。", "一共{v}个用户。", "席位要{v}个。"}},
				{name: "start", kind: "date", noun: "开始日期", names: []string{"开始", "开通日期"}, state: []string{"从{v}开始。", "开始日期是{v}。", "{v}开始使用。"}, cancel: true},
				{name: "account", kind: "text", noun: "账户", names: []string{"账号"}, prefix: "AC", state: []string{"我的账户是{v}。", "账户号码是{v}。", "这是账户{v}的事。"}},
			},
		},
		"billing": {
			system: "你是一家公司财务部的客服助手。" + conductZH,
			picked: "另一张发票",
			pick:   []string{"我这里还有{a}和{b}两张发票，那张也同样处理。", "另外有{a}和{b}，那一张也照办。", "我们还收到{a}和{b}，请把那张先挂起。"},
			copy:   []string{"请给我们的税务顾问也发一份。", "会计也需要收据，请发给他。", "请抄送我的经理。"},
			slots: []topic{
				{name: "method", kind: "enum", noun: "付款方式", names: []string{"付款", "支付"}, values: methodsZH, state: []string{"我想用{v}付款。", "付款方式是{v}。", "我们用{v}支付。"}, twin: "refund_method", twinNoun: "退款方式", same: []string{"之前多付的款也请用同样的方式退回。", "退款方式和付款方式一样就行。", "多付的钱按我们的付款方式退。"}},
				{name: "invoice", kind: "text", noun: "发票", names: []string{"发票号"}, prefix: "INV", state: []string{"关于发票{v}。", "发票号是{v}。", "我想问发票{v}。"}},
				{name: "amount", kind: "money", noun: "金额", names: []string{"总额"}, state: []string{"金额是{v}。", "总额应为{v}。", "一共{v}。"}},
				{name: "due", kind: "date", noun: "到期日", names: []string{"到期", "付款日"}, state: []string{"到期日是{v}。", "请把到期日定在{v}。", "我们{v}可以付款。"}, cancel: true},
				{name: "installments", kind: "number", noun: "分期数", names: []string{"分期", "期"}, state: []string{"分{v}期付。", "分期数是{v}。", "我们想分{v}期。"}, cancel: true},
			},
		},
		"travel": {
			system: "你是一家旅行社的客服助手。" + conductZH,
			picked: "另一个订单",
			pick:   []string{"我还有{a}和{b}两个订单，那个订单也照样改。", "另外有{a}和{b}，请把那个取消。", "家人订了{a}和{b}，那个订单也加一份餐。"},
			copy:   []string{"行程也请发给我妹妹。", "同行的人也需要资料，请发给他。", "请把票发给我的助理。"},
			slots: []topic{
				{name: "city", kind: "enum", noun: "目的地", names: []string{"城市"}, values: citiesZH, state: []string{"我想去{v}。", "我们要去{v}。", "目的地是{v}。"}, twin: "hotel_city", twinNoun: "酒店所在城市", same: []string{"酒店也订在同一个城市。", "那边的酒店也请订一下。", "另外在我们要去的地方订个酒店。"}},
				{name: "departure", kind: "date", noun: "出发日期", names: []string{"出发"}, state: []string{"{v}出发。", "出发日期是{v}。", "我们打算{v}出发。"}},
				{name: "travellers", kind: "number", noun: "人数", names: []string{"旅客", "位"}, state: []string{"一共{v}个人。", "人数是{v}。", "请订{v}位。"}},
				{name: "class", kind: "enum", noun: "舱位", values: classesZH, state: []string{"坐{v}。", "请订{v}。", "舱位要{v}。"}, cancel: true},
				{name: "budget", kind: "money", noun: "预算", state: []string{"预算是{v}。", "不要超过{v}。", "我们可以花{v}。"}, cancel: true},
				{name: "booking", kind: "text", noun: "订单", names: []string{"订单号"}, prefix: "BK", state: []string{"我的订单是{v}。", "订单号是{v}。", "属于订单{v}。"}},
			},
		},
		"support": {
			system: "你是一个办公设备服务台的客服助手。" + conductZH,
			picked: "另一个工单",
			pick:   []string{"我还开了{a}和{b}两个工单，请把那个关掉。", "另外有{a}和{b}，把这个附到那个工单里。", "我们组还报了{a}和{b}，那个也同样加急。"},
			copy:   []string{"进展也请通知我同事。", "管理员也要收到更新，请发给他。", "维修报告请发给我的经理。"},
			slots: []topic{
				{name: "device", kind: "enum", noun: "设备", values: devicesZH, state: []string{"是我的{v}的问题。", "{v}不能用了。", "我的{v}出了故障。"}},
				{name: "contact", kind: "enum", noun: "联系方式", names: []string{"联系"}, values: contactsZH, state: []string{"请用{v}联系我。", "联系方式用{v}最好。", "通过{v}找我。"}, twin: "deputy_contact", twinNoun: "代理人的联系方式", same: []string{"我不在时，用同样的方式联系我的代理人。", "我的代理人也用同样的联系方式。", "代理人的联系方式和我一样。"}},
				{name: "urgency", kind: "enum", noun: "紧急程度", names: []string{"优先级"}, values: urgencyZH, state: []string{"按{v}处理。", "优先级是{v}。", "这算{v}。"}, cancel: true},
				{name: "visit", kind: "date", noun: "上门日期", names: []string{"上门"}, state: []string{"技术员可以{v}上门。", "上门日期定在{v}。", "{v}可以上门。"}, cancel: true},
				{name: "ticket", kind: "text", noun: "工单", names: []string{"工单号"}, prefix: "TK", state: []string{"工单是{v}。", "工单号是{v}。", "属于工单{v}。"}},
				{name: "affected", kind: "number", noun: "受影响人数", names: []string{"影响", "人数"}, state: []string{"影响了{v}个人。", "受影响的有{v}人。", "有{v}个人不能工作。"}},
			},
		},
	},
}
