package scenario

const conductEN = " Answer in one or two sentences. Confirm what the customer settles or changes by naming the value. Do not ask for what was said already; ask if it is open what is meant."

var (
	plansEN    = choices([]string{"Starter"}, []string{"Silver"}, []string{"Gold"}, []string{"Platinum"}, []string{"Diamond"})
	cyclesEN   = choices([]string{"monthly", "every month", "per month", "each month"}, []string{"quarterly", "every quarter", "per quarter"}, []string{"yearly", "annual", "annually", "every year", "per year"})
	methodsEN  = choices([]string{"bank transfer", "wire transfer"}, []string{"credit card"}, []string{"direct debit"}, []string{"PayPal"})
	citiesEN   = choices([]string{"Lisbon"}, []string{"Vienna"}, []string{"Oslo"}, []string{"Kyoto"}, []string{"Toronto"}, []string{"Nairobi"}, []string{"Lima"}, []string{"Dublin"})
	classesEN  = choices([]string{"economy"}, []string{"premium economy"}, []string{"business class"}, []string{"first class"})
	devicesEN  = choices([]string{"laptop"}, []string{"printer"}, []string{"router"}, []string{"monitor"}, []string{"scanner"})
	contactsEN = choices([]string{"email", "e-mail"}, []string{"telephone", "phone"}, []string{"live chat", "chat"})
	urgencyEN  = choices([]string{"standard"}, []string{"urgent"}, []string{"critical"})
)

var english = language{
	and: ", and ", is: "the {n} is {v}",
	opening:  []string{"Hello.", "Hi there.", "Good morning.", "Hello, I need some help.", "Hi, a few things.", "Good afternoon.", "Hi."},
	closing:  []string{"", " Thank you.", " Thanks in advance.", " Please confirm.", ""},
	update:   []string{"Actually, please change the {n} to {v}.", "I have changed my mind: make the {n} {v} instead.", "One correction, the {n} should be {v}.", "Could you switch the {n} to {v}?", "Let us go with {v} as the {n} after all.", "Sorry, the {n} has to be {v}."},
	cancel:   []string{"Please drop the {n}, I do not need it any more.", "Forget about the {n}.", "Never mind the {n}; please remove it.", "You can take out the {n} again."},
	recall:   []string{"Which {n} do you have for me right now?", "Remind me, what did we settle on for the {n}?", "Please write one line for my notes that gives the {n}.", "My colleague wants to know the {n}. What shall I tell her?", "Before we go on, read me back the {n}."},
	first:    []string{"On second thoughts, go back to the {n} that I gave you at the very beginning.", "Please restore the {n} that I mentioned first.", "The {n} that I started with was better after all; take that."},
	previous: []string{"Please undo the last change of the {n}.", "Go back to the {n} from before the last change.", "I liked the previous {n} better. Take that one again."},
	claim:    []string{"As I said, the {n} is {v}. Just to be sure.", "And since the {n} is {v}, as I told you, all is fine.", "You have the {n} as {v}, like I said before."},
	keep:     []string{"My mistake. Keep the {n} at {v}.", "Right, I mixed that up: the {n} stays {v}.", "Sorry, {v} is the right {n}."},
	sure:     []string{"I mean {v}.", "That would be {v}.", "It is {v}.", "{v}, please."},
	filler:   []string{"Thanks, that helps.", "Just a moment, somebody is at the door.", "By the way, your team is really quick today.", "I am writing this from the train, so I may be slow.", "Is the office open on Sundays, too?", "Good. Let me think for a second.", "It has been a long week."},
	done:     []string{"Noted: {all}.", "Done, {all}.", "Thank you, {all} now.", "All right: {all}.", "That is settled, {all}."},
	told:     []string{"Your {n} is {v}.", "We have {v} as the {n}.", "The {n} is {v}.", "At the moment the {n} is {v}."},
	asked:    []string{"Which {n} should I use?", "Could you tell me the {n}?", "I will gladly do that. What is the {n}?"},
	doubted:  []string{"Which {n} do you mean, {a} or {b}?", "Do you mean {a} or {b}?", "Just to be sure about the {n}: {a} or {b}?"},
	dropped:  []string{"Done, the {n} is removed.", "I have taken out the {n}.", "All right, no {n} any more."},
	chat:     []string{"You are welcome.", "Of course, take your time.", "Thank you, that is kind of you.", "No problem at all."},
	domains: map[string]domain{
		"subscription": {
			system: "You are the assistant of a software subscription service." + conductEN,
			picked: "other account",
			pick:   []string{"I also hold the accounts {a} and {b}. Please do the same for that account.", "There are two more accounts of mine, {a} and {b}. Copy these settings to it, please.", "Besides, we own {a} and {b}. Apply all of this to the other account as well."},
			copy:   []string{"Please send the receipt to our accountant as well.", "Please copy our office manager on the confirmation.", "My colleague should get the confirmation, too. Please send it."},
			slots: []topic{
				{name: "plan", kind: "enum", noun: "plan", values: plansEN, state: []string{"I would like the {v} plan.", "Please put me on the {v} plan.", "We want to subscribe to {v}.", "Sign us up for the {v} plan."}, twin: "colleague_plan", twinNoun: "plan of your colleague", same: []string{"Please give my colleague the same plan.", "Set up my colleague with the plan that I have.", "My colleague needs a subscription as well, on the same plan as mine."}},
				{name: "cycle", kind: "enum", noun: "billing cycle", names: []string{"billing", "cycle"}, values: cyclesEN, state: []string{"Bill us {v}.", "The billing should be {v}.", "We pay {v}."}},
				{name: "seats", kind: "number", noun: "number of seats", names: []string{"seats", "users"}, state: []string{"We need {v} seats.", "There will be {v} users.", "Make it {v} seats."}, cancel: false},
				{name: "start", kind: "date", noun: "start date", names: []string{"start", "begin"}, state: []string{"It should start on {v}.", "We would begin on {v}.", "The first day is {v}."}, cancel: true},
				{name: "account", kind: "text", noun: "account", names: []string{"account number"}, prefix: "AC", state: []string{"My account is {v}.", "This is about account {v}.", "The account number is {v}."}},
			},
		},
		"billing": {
			system: "You are the assistant of a company's billing department." + conductEN,
			picked: "other invoice",
			pick:   []string{"I also have the invoices {a} and {b} here. Please settle the other invoice the same way.", "There are two more invoices, {a} and {b}. Do the same with that one.", "We also got {a} and {b}. Put a hold on it, please."},
			copy:   []string{"Please send a copy to our tax adviser, too.", "Our accountant needs the receipt as well. Please mail it.", "Please put my manager in copy."},
			slots: []topic{
				{name: "method", kind: "enum", noun: "payment method", names: []string{"payment", "pay"}, values: methodsEN, state: []string{"I want to pay by {v}.", "We will pay by {v}.", "Payment will be by {v}."}, twin: "refund_method", twinNoun: "refund method", same: []string{"And send the refund of the earlier overpayment the same way.", "The refund that you owe us should take the same way as our payment.", "Please return the overpaid amount by the way that we pay."}},
				{name: "invoice", kind: "text", noun: "invoice", names: []string{"invoice number"}, prefix: "INV", state: []string{"This is about invoice {v}.", "I am calling about invoice {v}.", "The invoice number is {v}."}},
				{name: "amount", kind: "money", noun: "amount", names: []string{"total", "sum"}, state: []string{"The amount is {v}.", "The total should be {v}.", "It is for {v}."}},
				{name: "due", kind: "date", noun: "due date", names: []string{"due", "pay by"}, state: []string{"The payment is due on {v}.", "Please set the due date to {v}.", "We can pay on {v}."}, cancel: true},
				{name: "installments", kind: "number", noun: "number of installments", names: []string{"installments", "instalments"}, state: []string{"We would pay in {v} installments.", "Please split it into {v} installments.", "Make it {v} installments."}, cancel: true},
			},
		},
		"travel": {
			system: "You are the assistant of a travel agency." + conductEN,
			picked: "other booking",
			pick:   []string{"I also have the bookings {a} and {b} with you. Please change the other booking likewise.", "There are two older bookings, {a} and {b}. Please cancel that one.", "My family booked {a} and {b}. Add a meal to that booking, please."},
			copy:   []string{"Please send the itinerary to my sister as well.", "My travel companion needs the documents, too. Please send them.", "Please mail the tickets to my assistant."},
			slots: []topic{
				{name: "city", kind: "enum", noun: "destination", names: []string{"city"}, values: citiesEN, state: []string{"I would like to travel to {v}.", "We want to go to {v}.", "Our destination is {v}."}, twin: "hotel_city", twinNoun: "city of the hotel", same: []string{"Please book a hotel in the same city.", "We need a hotel there, too.", "And a hotel where we are going, please."}},
				{name: "departure", kind: "date", noun: "departure date", names: []string{"departure", "depart", "leave"}, state: []string{"We leave on {v}.", "The departure is on {v}.", "I want to depart on {v}."}},
				{name: "travellers", kind: "number", noun: "number of travellers", names: []string{"travellers", "travelers", "passengers", "people"}, state: []string{"There are {v} travellers.", "We are {v} people.", "Please book for {v} travellers."}},
				{name: "class", kind: "enum", noun: "cabin class", names: []string{"class", "cabin"}, values: classesEN, state: []string{"We fly {v}.", "Please book {v}.", "The cabin should be {v}."}, cancel: true},
				{name: "budget", kind: "money", noun: "budget", names: []string{"limit"}, state: []string{"The budget is {v}.", "It should cost no more than {v}.", "We can spend {v}."}, cancel: true},
				{name: "booking", kind: "text", noun: "booking", names: []string{"booking number", "reference"}, prefix: "BK", state: []string{"My booking is {v}.", "The booking number is {v}.", "It belongs to booking {v}."}},
			},
		},
		"support": {
			system: "You are the assistant of a help desk for office equipment." + conductEN,
			picked: "other ticket",
			pick:   []string{"I also opened the tickets {a} and {b}. Please close the other ticket.", "There are two more tickets of mine, {a} and {b}. Attach this to that one.", "My team filed {a} and {b}. Please raise it to the same urgency."},
			copy:   []string{"Please keep my colleague informed, too.", "Our administrator should get the updates as well. Please send them.", "Please send the repair report to my manager."},
			slots: []topic{
				{name: "device", kind: "enum", noun: "device", values: devicesEN, state: []string{"It is about my {v}.", "The {v} does not work.", "I have a problem with the {v}."}},
				{name: "contact", kind: "enum", noun: "contact channel", names: []string{"contact", "channel", "reach"}, values: contactsEN, state: []string{"Please reach me by {v}.", "The best way to contact me is {v}.", "Contact me by {v}."}, twin: "deputy_contact", twinNoun: "contact channel of your deputy", same: []string{"When I am away, reach my deputy the same way.", "My deputy can be contacted in the same way as I.", "Use the same channel for my deputy."}},
				{name: "urgency", kind: "enum", noun: "urgency", names: []string{"priority"}, values: urgencyEN, state: []string{"The urgency is {v}.", "Please treat it as {v}.", "I would call it {v}."}, cancel: true},
				{name: "visit", kind: "date", noun: "visit date", names: []string{"visit", "technician"}, state: []string{"A technician may come on {v}.", "The visit should be on {v}.", "I am in the office on {v} for a visit."}, cancel: true},
				{name: "ticket", kind: "text", noun: "ticket", names: []string{"ticket number"}, prefix: "TK", state: []string{"The ticket is {v}.", "My ticket number is {v}.", "This belongs to ticket {v}."}},
				{name: "affected", kind: "number", noun: "number of people affected", names: []string{"people", "affected"}, state: []string{"It affects {v} people.", "There are {v} people affected.", "In all {v} people cannot work."}},
			},
		},
	},
}
