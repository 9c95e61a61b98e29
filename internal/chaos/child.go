package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// child is a worker process, seen by its parent.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	dead chan struct{} // Closed when the process is gone.

	mu      sync.Mutex
	stopped int
	ended   map[string]said
	waiting map[string]chan said
	change  chan struct{}
	errors  tailBuffer
}

// program is how workers are started: a path, variables of its environment, and
// what it reads and writes. The zero value is this very program.
type program struct {
	path  string
	env   []string
	build build
}

func (pr program) start(o order) (*child, error) {
	o.Build = pr.build
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	if pr.path == "" {
		if pr.path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	c := &child{
		cmd: exec.Command(pr.path), dead: make(chan struct{}),
		ended: map[string]said{}, waiting: map[string]chan said{}, change: make(chan struct{}),
	}
	c.cmd.Env = append(append(os.Environ(), pr.env...), workerEnv+"="+string(text))
	c.cmd.Stderr = &c.errors
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.listen(out)
	return c, nil
}

// listen takes what the worker says until it is gone.
func (c *child) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s said
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue // cut off by its death
		}
		c.mu.Lock()
		if s.Stopped {
			c.stopped++
		}
		if s.Job != "" {
			c.ended[s.Job] = s
			if answer := c.waiting[s.Job]; answer != nil {
				answer <- s
				delete(c.waiting, s.Job)
			}
		}
		close(c.change)
		c.change = make(chan struct{})
		c.mu.Unlock()
	}
	_ = c.cmd.Wait() // how it ended is what its parent did
	close(c.dead)
}

// await waits until the worker has come so far, or is gone.
func (c *child) await(far func(stopped, ended int) bool) error {
	over := time.After(time.Minute)
	for {
		c.mu.Lock()
		stopped, ended, change := c.stopped, len(c.ended), c.change
		c.mu.Unlock()
		if far(stopped, ended) {
			return nil
		}
		select {
		case <-change:
		case <-c.dead:
			return fmt.Errorf("the worker ended by itself after %d stops and %d jobs: %s", stopped, ended, c.errors.String())
		case <-over:
			return fmt.Errorf("the worker came to %d stops and %d ends of jobs in %v: %s", stopped, ended, time.Minute, c.errors.String())
		}
	}
}

var errDied = errors.New("the worker died")

// do hands a job to a feeding worker and waits for its end.
func (c *child) do(j job) (said, error) {
	line, err := json.Marshal(j)
	if err != nil {
		return said{}, err
	}
	answer := make(chan said, 1)
	c.mu.Lock()
	c.waiting[j.ID] = answer
	_, err = c.in.Write(append(line, '\n'))
	c.mu.Unlock()
	if err != nil {
		return said{}, errDied
	}
	select {
	case s := <-answer:
		return s, nil
	case <-c.dead:
		return said{}, errDied
	}
}

// kill ends the process with SIGKILL, which it cannot answer, and waits until it
// is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // gone already: the same end
	<-c.dead
}

// tailBuffer keeps the beginning of what a worker complains about.
type tailBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := 4000 - len(b.text); room > 0 {
		b.text = append(b.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
