package haystack

// tongue is what texts of a language are made of. Strings with %s and %d are
// templates of package fmt.
type tongue struct {
	names, surnames, things, places, adjectives, verbs, firms, units []string

	keys, kinds []string // of what needles are about: "Copper Lantern", "depot"; in none of the texts
	goods       []string // what is counted; in none of the texts
	aliases     []string // what people are called; in none of the texts

	code, notice, tonnage, crate, person, signed string

	intro, askCode, askCodes, askQuota, askCount, askName, askTonnage string

	join, and string // between the names in a question
	absent    string // what to answer where there is nothing
}

var english = tongue{
	names: []string{
		"Tamsin", "Odell", "Prue", "Marlow", "Ines", "Bram", "Corin", "Della", "Edda", "Fitch", "Greta", "Hollis", "Ivo", "Jory", "Keir", "Lotte", "Mabel", "Nils", "Orla", "Piers",
		"Quill", "Rhoda", "Sorrel", "Tobin", "Una", "Vesper", "Wynn", "Yara", "Zeke", "Aldous", "Birgit", "Clement", "Dorcas", "Emrys", "Flora", "Gideon",
	},
	surnames: []string{"Ashdown", "Birtwell", "Carraway", "Dunmore", "Eastlake", "Farrow", "Gilchrist", "Hathaway", "Inglewood", "Jessop", "Kirkwall", "Larkin", "Merriman", "Northcote", "Oakhurst", "Pemberton", "Quarles", "Rowntree", "Stanhope", "Thackeray", "Underhill", "Vickers", "Wetherby", "Yardley"},
	things: []string{
		"rope", "wire", "timber", "nails", "canvas", "paint", "lamp oil", "wool", "barley", "salt", "tiles", "glass", "bricks", "paper", "candles", "hinges", "valves", "pipes", "gravel", "cement",
		"flour", "honey", "apples", "leather", "soap", "ink", "bolts", "gaskets", "filters", "cables", "batteries", "buckets", "ladders", "brooms", "gloves", "tarpaulin",
	},
	places:     []string{"harbour", "mill", "bridge", "station", "orchard", "quarry", "chapel", "market", "school", "lighthouse", "tannery", "brewery", "ferry", "lock", "warehouse", "workshop", "garden", "courtyard", "archive", "kitchen", "granary", "boathouse", "signal box", "pump house"},
	adjectives: []string{"quiet", "narrow", "old", "bright", "cold", "empty", "crowded", "distant", "dusty", "heavy", "broken", "painted", "early", "late", "muddy", "dry", "windy", "sunlit", "low", "steep", "wooden", "plain", "long", "hidden"},
	verbs:      []string{"carried", "counted", "mended", "moved", "cleaned", "measured", "sorted", "stacked", "inspected", "weighed", "packed", "unloaded", "returned", "borrowed", "sold", "repaired", "labelled", "covered", "opened", "ordered"},
	firms:      []string{"Bell & Sons", "the Tarn Company", "Hobb Brothers", "Fenwick Supply", "the Upper Mill", "Royce & Daughter", "Lowland Freight", "the Island Store", "Harrow Works", "Pike and Partners", "Crane Street Stores", "the Old Foundry"},
	units:      []string{"crates", "coils", "sacks", "barrels", "boxes", "pallets", "bundles", "drums", "reels", "bags"},

	keys: []string{
		"Copper Lantern", "Silver Heron", "Amber Falcon", "Crimson Anchor", "Ivory Compass", "Velvet Otter", "Cobalt Raven", "Golden Thistle", "Jade Pelican", "Scarlet Badger", "Marble Fox", "Indigo Swan",
		"Bronze Kestrel", "Emerald Lynx", "Pearl Dolphin", "Obsidian Owl", "Saffron Hound", "Crystal Wren", "Onyx Beaver", "Coral Stag", "Topaz Crane", "Quartz Moth", "Russet Hare", "Azure Viper",
	},
	kinds:   []string{"depot", "vault", "hangar", "bunker", "annex", "pavilion"},
	goods:   []string{"saffron bulbs", "brass sextants", "violin strings", "porcelain masks", "fossil combs", "meteorite shards", "opera glasses", "puppet heads", "music boxes", "sundials", "snow globes", "chess clocks"},
	aliases: []string{"the Magpie", "the Badger", "the Comet", "the Deacon", "the Walrus", "the Needle", "the Gambler", "the Pilgrim", "the Sparrow", "the Hermit", "the Duchess", "the Juggler"},

	code:    "The access code of the %s %s is %s.",
	notice:  "Notice: the quota of the %s %s is now %s.",
	tonnage: "The register gives the tonnage of the %s %s as %s.",
	crate:   "One crate of %s was delivered to bay %d.",
	person:  "%s %s, whom the crew calls %s, has looked after this part of the yard since spring.",
	signed:  "At dusk it was %s who signed for the sealed trunk.",

	intro:      "Below is a long text. Behind its end stands a question about it.",
	askCode:    "What is the access code of the %s? Answer with the code alone. If the text above does not state it, answer: not stated.",
	askCodes:   "What are the access codes of the %s? Answer with the codes alone, in this order, separated by commas. If the text above does not state one, write: not stated.",
	askQuota:   "The text above states the quota of the %s more than once, the newest last. What is the latest quota? Answer with the number alone. If the text does not state it, answer: not stated.",
	askCount:   "How many crates of %s were delivered, by the text above? Answer with the number alone.",
	askName:    "What is the full name of the person who signed for the sealed trunk at dusk? Answer with the name alone. If the text above does not state it, answer: not stated.",
	askTonnage: "What is the tonnage of the %s, by the text above? If the text contradicts itself, give the value that comes last and say that it is contradictory. If the text does not state it, answer: not stated.",
	join:       ", the ", and: " and the ", absent: "not stated",
}

var chinese = tongue{
	names:      []string{"静波", "明远", "思齐", "雨晴", "建国", "晓岚", "志强", "海燕", "文博", "秀英", "子涵", "国栋", "丽华", "天佑", "春梅", "俊杰", "玉兰", "永康", "佳宁", "立群", "庆云", "若兰", "向东", "书瑶"},
	surnames:   []string{"林", "陈", "赵", "周", "吴", "郑", "孙", "马", "朱", "胡", "郭", "何", "高", "罗", "梁", "宋", "唐", "许", "韩", "冯", "邓", "曹", "彭", "曾"},
	things:     []string{"麻绳", "铁丝", "木料", "钉子", "帆布", "油漆", "灯油", "羊毛", "大麦", "食盐", "瓦片", "玻璃", "砖块", "纸张", "蜡烛", "合页", "阀门", "水管", "砂石", "水泥", "面粉", "蜂蜜", "苹果", "皮革", "肥皂", "墨水", "螺栓", "垫圈", "滤芯", "电缆", "电池", "水桶"},
	places:     []string{"码头", "磨坊", "石桥", "车站", "果园", "采石场", "礼堂", "集市", "学校", "灯塔", "染坊", "酒坊", "渡口", "船闸", "货栈", "工场", "花园", "院子", "档案室", "厨房", "粮仓", "船坞", "信号房", "泵房"},
	adjectives: []string{"安静", "狭窄", "古老", "明亮", "寒冷", "空荡", "拥挤", "遥远", "积灰", "沉重", "破旧", "低矮", "清早", "傍晚", "泥泞", "干燥", "多风", "向阳", "陡峭", "朴素"},
	verbs:      []string{"搬运", "清点", "修补", "移走", "清洗", "丈量", "分拣", "堆放", "检查", "称量", "打包", "卸下", "归还", "借走", "售出", "修理", "登记", "遮盖", "打开", "订购"},
	firms:      []string{"宏泰行", "塔恩公司", "霍氏兄弟", "芬记商号", "上磨坊", "罗记货栈", "洼地货运", "海岛商店", "哈罗工厂", "派克商社", "鹤街货店", "旧铸造厂"},
	units:      []string{"箱", "卷", "袋", "桶", "盒", "捆", "包", "筐"},

	keys:    []string{"铜灯笼", "银苍鹭", "琥珀隼", "绯红锚", "象牙罗盘", "丝绒獭", "钴蓝鸦", "金蓟花", "翡翠鹈鹕", "猩红獾", "云石狐", "靛蓝天鹅", "青铜鹞", "祖母绿猞猁", "珍珠海豚", "黑曜石枭", "藏红猎犬", "水晶鹪鹩", "缟玛瑙河狸", "珊瑚鹿"},
	kinds:   []string{"库房", "金库", "机库", "地堡", "别馆", "展亭"},
	goods:   []string{"藏红花球", "黄铜六分仪", "提琴弦", "瓷面具", "化石梳", "陨石片", "观剧镜", "木偶头", "八音盒", "日晷", "雪景球", "棋钟"},
	aliases: []string{"喜鹊", "老獾", "彗星", "执事", "海象", "银针", "赌徒", "香客", "麻雀", "隐士", "女公爵", "杂耍客"},

	code:    "%s%s的门禁码是%s。",
	notice:  "通知：%s%s的配额现为%s。",
	tonnage: "登记册所载%s%s的吨位为%s。",
	crate:   "有一箱%s送到了%d号货位。",
	person:  "%s%s自开春以来照管这一片场地，大家都叫此人“%s”。",
	signed:  "黄昏时分，签收那只封箱的正是“%s”。",

	intro:      "下面是一段长文，长文结束之后有一个关于它的问题。",
	askCode:    "%s的门禁码是多少？只回答门禁码。如果上文没有说明，请回答：未说明。",
	askCodes:   "%s的门禁码分别是多少？按此顺序只回答门禁码，用逗号隔开。如果上文没有说明其中某一个，请写：未说明。",
	askQuota:   "上文不止一次说到%s的配额，越靠后越新。最新的配额是多少？只回答数字。如果上文没有说明，请回答：未说明。",
	askCount:   "根据上文，一共送到了几箱%s？只回答数字。",
	askName:    "黄昏时分签收那只封箱的人，全名叫什么？只回答姓名。如果上文没有说明，请回答：未说明。",
	askTonnage: "根据上文，%s的吨位是多少？如果上文前后矛盾，请给出最后出现的数值并说明有矛盾。如果上文没有说明，请回答：未说明。",
	join:       "、", and: "和", absent: "未说明",
}
