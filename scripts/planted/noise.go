package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
)

// listener tells what a customer wants by the words that it knows of each wish. It
// hears them through noise, unless it is literal.
type listener struct {
	seed    uint64
	wrong   float64 // of its answers, whatever it heard
	literal bool    // it knows words only as they are spelt
}

// listenerWords are what the listener knows, by what a wish is called.
var listenerWords = map[string]string{
	"report a lost card":              "lost stolen block wallet missing card payments",
	"ask for the balance":             "balance savings left current account money",
	"send money":                      "transfer send savings foreign monthly",
	"ask about a loan":                "loan mortgage interest borrow terms",
	"use the phone abroad":            "roaming abroad international travel",
	"change the plan":                 "tariff plan subscription gigabytes data",
	"report that the network is down": "broadband router signal fibre connection down",
	"ask about the bill":              "bill charge invoice fee phone service",
	"get the money back":              "refund returned broken charged money payment",
	"ask where the parcel is":         "parcel courier delivered delivery package arrived",
	"use a voucher":                   "voucher coupon discount checkout vouchers",
	"get an invoice":                  "invoice receipt company accountant document",
	"银行卡挂失":                           "丢 挂失 被偷 冻结 找不到 钱包 信用卡",
	"查询余额":                            "余额 还剩 多少 存款 卡里",
	"转账汇款":                            "转账 汇款 国外 每月",
	"咨询贷款":                            "贷款 利息 借 提前还款",
	"国际漫游":                            "漫游 出国 国外 国际",
	"更改套餐":                            "套餐 流量 更改",
	"网络故障":                            "宽带 路由器 信号 断线 网页",
	"话费账单":                            "话费 账单 费用",
	"申请退款":                            "退款 退货 退还 扣款",
	"查询物流":                            "快递 物流 包裹 送到 签收",
	"使用优惠券":                           "优惠券 结账",
	"开发票":                             "发票 抬头",
}

var optionRE = regexp.MustCompile(`(?m)^([A-Z])\) (.+)$`)

func (m listener) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	text := q.Messages[len(q.Messages)-1].Content
	message, _, _ := strings.Cut(text, "\n\nA) ")
	rng := chance(m.seed, text)
	best, votes := []string{}, 0.5
	options := optionRE.FindAllStringSubmatch(text, -1)
	for _, o := range options {
		n := 0.0
		for _, w := range strings.Fields(listenerWords[o[2]]) {
			if m.hears(message, w) {
				n++
			}
		}
		if n > votes {
			best, votes = nil, n
		}
		if n == votes {
			best = append(best, o[1])
		}
	}
	if len(best) == 0 || rng.Float64() < m.wrong {
		best = nil
		for _, o := range options {
			best = append(best, o[1])
		}
	}
	said := best[rng.IntN(len(best))]
	return answer([]string{said, said + ")", "The answer is " + said + "."}[rng.IntN(3)], q), nil
}

// hears reports whether a word is in a message: as it is spelt, or nearly, however
// its letters are parted.
func (m listener) hears(message, word string) bool {
	if m.literal {
		return strings.Contains(strings.ToLower(message), word)
	}
	line, want := []rune(strings.ToLower(strings.ReplaceAll(message, " ", ""))), []rune(word)
	room := len(want) / 3 // letters that may differ
	if word[0] >= 0x80 {
		room = len(want) / 2
	}
	// The least distance of the word to any part of the line (Sellers 1980).
	row := make([]int, len(line)+1)
	for i, w := range want {
		last := slices.Clone(row)
		row[0] = i + 1
		for j, c := range line {
			cost := 1
			if c == w {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
		}
	}
	return slices.Min(row) <= room
}

func noiseFaults() []fault {
	return []fault{{
		check: "noise", name: "fragile under noise", by: "the finding fragile or more_fragile", where: "the noise that costs most: misheard terms",
		doc: "The candidate knows its words only as they are spelt; the clean models hear them through errors of a third of the letters, or half of the characters. All are wrong in 5 % of their answers besides.",
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			base, candidate := listener{seed: 2 * seed, wrong: 0.05}, listener{seed: 2*seed + 1, wrong: 0.05, literal: faulty}
			_, out, err := run(ctx, seed, base, candidate, nil, nil, check.Declared{Check: dimension.Noise, Config: dimension.Noise.Config()})
			if err != nil {
				return told{}, err
			}
			var t told
			for _, f := range out[0].Findings {
				if f.Severity != check.Info && f.Variant == "candidate" {
					t.found = true
					t.placed = t.placed || strings.Contains(f.Text, "noise term:")
				}
			}
			return t, nil
		},
	}}
}
