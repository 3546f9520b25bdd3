// The edge of the test cluster: a name server for Services and a small ingress for Knative. Knative needs some
// program that makes its Ingress objects true; this one does it without Envoy.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	networking "knative.dev/networking/pkg/client/clientset/versioned"
)

const byService = "service"

// slicesByService lets the ingress find the endpoints of a Service without walking over all of them.
func slicesByService(object any) ([]string, error) {
	slice := object.(*discovery.EndpointSlice)
	return []string{slice.Namespace + "/" + slice.Labels[discovery.LabelServiceName]}, nil
}

func main() {
	path := flag.String("kubeconfig", "", "how to reach the API server")
	class := flag.String("class", "mini.ingress.networking.knative.dev", "the class of Ingress objects to serve")
	address := flag.String("http", "10.77.0.1:80", "where the ingress listens")
	names := flag.String("dns", "10.77.0.1:53", "where the name server listens")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *path)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	ctx := context.Background()
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	services, slices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	services.Informer()
	if err := slices.Informer().AddIndexers(cache.Indexers{byService: slicesByService}); err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go serveNames(*names, services.Lister())
	client := networking.NewForConfigOrDie(config)
	// The definition of Ingress is applied after this program starts.
	for {
		if _, err := client.NetworkingV1alpha1().Ingresses("").List(ctx, meta.ListOptions{Limit: 1}); err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	ingress := &ingress{client: client, class: *class, address: *address, services: services.Lister(), slices: slices.Informer().GetIndexer()}
	log.Fatal(ingress.serve(ctx))
}
