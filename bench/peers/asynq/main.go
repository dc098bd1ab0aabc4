// Asynq's aggregation as its documentation has it: an HTTP front that enqueues each item into the group of its key,
// and a handler that posts what the aggregator joined. Without SINK_URL it only takes items.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
)

const (
	concurrency  = 64
	deliveryTime = 10 * time.Second
	// A new group's batch may start this much late; the default is a second.
	taskCheckInterval = 100 * time.Millisecond
)

type batch struct {
	Key   string            `json:"key"`
	Items []json.RawMessage `json:"items"`
}

func main() {
	redis := asynq.RedisClientOpt{Addr: os.Getenv("REDIS_ADDRESS"), PoolSize: 2 * concurrency}
	if sink := os.Getenv("SINK_URL"); sink != "" {
		if err := newServer(redis).Start(newDelivery(sink)); err != nil {
			log.Fatal(err)
		}
	}
	http.HandleFunc("POST /", ingest(asynq.NewClient(redis)))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func newServer(redis asynq.RedisClientOpt) *asynq.Server {
	return asynq.NewServer(redis, asynq.Config{
		Concurrency:       concurrency,
		GroupGracePeriod:  milliseconds("IDLE_MS"),
		GroupMaxDelay:     milliseconds("MAX_WAIT_MS"),
		GroupMaxSize:      integer("MAX_ITEMS"),
		TaskCheckInterval: taskCheckInterval,
		LogLevel:          asynq.ErrorLevel,
		GroupAggregator:   asynq.GroupAggregatorFunc(join),
	})
}

func join(group string, tasks []*asynq.Task) *asynq.Task {
	joined := batch{Key: group, Items: make([]json.RawMessage, 0, len(tasks))}
	for _, task := range tasks {
		joined.Items = append(joined.Items, task.Payload())
	}
	body, err := json.Marshal(joined)
	if err != nil {
		log.Fatal(err) // Only parsed JSON was stored.
	}
	return asynq.NewTask("deliver", body)
}

func newDelivery(sink string) asynq.HandlerFunc {
	client := &http.Client{
		Timeout:   deliveryTime,
		Transport: &http.Transport{MaxIdleConnsPerHost: concurrency},
	}
	return func(ctx context.Context, task *asynq.Task) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, sink, bytes.NewReader(task.Payload()))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		if id, known := asynq.GetTaskID(ctx); known {
			request.Header.Set("X-Idempotency-Key", id)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("the sink answered %d", response.StatusCode)
		}
		return nil
	}
}

func ingest(client *asynq.Client) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var item struct {
			Key string `json:"key"`
		}
		if err != nil || json.Unmarshal(body, &item) != nil || item.Key == "" {
			http.Error(answer, `{"error":"no key"}`, http.StatusBadRequest)
			return
		}
		stored, err := client.EnqueueContext(request.Context(), asynq.NewTask("item", body), asynq.Group(item.Key))
		if err != nil {
			http.Error(answer, `{"error":"not stored"}`, http.StatusServiceUnavailable)
			return
		}
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(answer, `{"status":"accepted","messageId":%q}`, stored.ID)
	}
}

func milliseconds(name string) time.Duration {
	return time.Duration(integer(name)) * time.Millisecond
}

func integer(name string) int {
	number, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	return number
}
