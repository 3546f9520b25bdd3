// The function under test. The query has the three settings of Knative's autoscale-go sample, run side by side:
// bloat (MB allocated and touched), prime (sieve up to n), sleep (milliseconds); besides cpu (n times 20,000 rounds
// of xorshift) and hold (MB that are never freed, to provoke a memory kill).
package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

var (
	began = time.Now()
	lock  sync.Mutex
	held  [][]byte
	sink  uint64
)

func touch(megabytes int) []byte {
	block := make([]byte, megabytes<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	return block
}

func largestPrime(limit int) (largest int) {
	composite := make([]bool, limit+1)
	for i := 2; i <= limit; i++ {
		if composite[i] {
			continue
		}
		largest = i
		for j := i * i; j <= limit; j += i {
			composite[j] = true
		}
	}
	return largest
}

func spin(rounds int) uint64 {
	x := uint64(88172645463325252)
	for range 20000 * rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func answer(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	query := r.URL.Query()
	var parts sync.WaitGroup
	start := func(name string, work func(amount int)) {
		if amount, _ := strconv.Atoi(query.Get(name)); amount > 0 {
			parts.Go(func() { work(amount) })
		}
	}
	prime := 0
	start("sleep", func(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) })
	start("bloat", func(mb int) { touch(mb) })
	start("prime", func(limit int) { prime = largestPrime(limit) })
	start("cpu", func(rounds int) { x := spin(rounds); lock.Lock(); sink ^= x; lock.Unlock() })
	start("hold", func(mb int) { block := touch(mb); lock.Lock(); held = append(held, block); lock.Unlock() })
	parts.Wait()
	host, _ := os.Hostname()
	fmt.Fprintf(w, "%s up=%.3f took=%.3fms prime=%d\n", host, time.Since(began).Seconds(),
		float64(time.Since(arrived).Microseconds())/1000, prime)
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	http.HandleFunc("/", answer)
	fmt.Println("listening on", port)
	panic(http.ListenAndServe(":"+port, nil))
}
