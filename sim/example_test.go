package sim_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/assay-llm/assay/sim"
)

// An engine is driven by whoever has the time: here a loop that jumps from event
// to event.
func ExampleEngine() {
	engine, err := sim.NewEngine(sim.Config{Model: sim.Model{Name: "8b"}, GPU: "h100"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := engine.Submit(sim.Request{Prompt: sim.Tokens("Why is the sky blue?"), MaxTokens: 3}, 0); err != nil {
		fmt.Println(err)
		return
	}
	for at, ok := engine.Next(); ok; at, ok = engine.Next() {
		for _, token := range engine.Step(at) {
			fmt.Println(token.At.Round(10*time.Microsecond), token.Index, token.Finish != "")
		}
	}
	// Output:
	// 7.48ms 0 false
	// 14.75ms 1 false
	// 22.02ms 2 true
}

// A server and a client on a network in memory need no port.
func ExampleNetwork() {
	server, err := sim.NewServer(sim.Config{Name: "my-model"})
	if err != nil {
		fmt.Println(err)
		return
	}
	network := sim.NewNetwork()
	listener, err := network.Listen("engine:80")
	if err != nil {
		fmt.Println(err)
		return
	}
	hs := &http.Server{Handler: server}
	go func() { _ = hs.Serve(listener) }()
	defer hs.Close()

	client := http.Client{Transport: &http.Transport{DialContext: network.DialContext}}
	resp, err := client.Get("http://engine/health")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}
