// KEDA's own client of an external scaler, which it generates from its interface: asks the same questions as KEDA's operator,
// in the same order, and writes the answers as one line of JSON.
//
//	keda ADDRESS NAMESPACE POLICY
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

type answers struct {
	Active   bool    `json:"active"`
	Streamed bool    `json:"streamed"`
	Metric   string  `json:"metric"`
	Target   float64 `json:"target"`
	Value    float64 `json:"value"`
}

func ask(address, namespace, policy string) (found answers, err error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return found, err
	}
	defer connection.Close()
	within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	scaler := pb.NewExternalScalerClient(connection)
	object := &pb.ScaledObjectRef{
		Name: "function", Namespace: namespace, ScalerMetadata: map[string]string{"policy": policy},
	}
	active, err := scaler.IsActive(within, object)
	if err != nil {
		return found, fmt.Errorf("IsActive: %w", err)
	}
	stream, err := scaler.StreamIsActive(within, object)
	if err != nil {
		return found, fmt.Errorf("StreamIsActive: %w", err)
	}
	streamed, err := stream.Recv()
	if err != nil {
		return found, fmt.Errorf("StreamIsActive: %w", err)
	}
	specs, err := scaler.GetMetricSpec(within, object)
	if err != nil {
		return found, fmt.Errorf("GetMetricSpec: %w", err)
	}
	metric := specs.MetricSpecs[0]
	values, err := scaler.GetMetrics(within, &pb.GetMetricsRequest{ScaledObjectRef: object, MetricName: metric.MetricName})
	if err != nil {
		return found, fmt.Errorf("GetMetrics: %w", err)
	}
	return answers{
		Active: active.Result, Streamed: streamed.Result, Metric: metric.MetricName,
		Target: metric.TargetSizeFloat, Value: values.MetricValues[0].MetricValueFloat,
	}, nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: keda ADDRESS NAMESPACE POLICY")
		os.Exit(2)
	}
	found, err := ask(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}
