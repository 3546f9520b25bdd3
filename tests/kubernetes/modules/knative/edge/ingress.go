package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	core "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	networking "knative.dev/networking/pkg/client/clientset/versioned"
	"knative.dev/networking/pkg/client/informers/externalversions"
	listers "knative.dev/networking/pkg/client/listers/networking/v1alpha1"
)

// ingress routes by host name to the endpoints of the Service that Knative names, which are the activator's or the
// pods' own, as the ServerlessService's mode says.
type ingress struct {
	client         *networking.Clientset
	class, address string
	services       core.ServiceLister
	slices         cache.Indexer
	lock           sync.RWMutex
	routes         map[string][]v1alpha1.IngressBackendSplit
	turn           atomic.Uint64
}

func (i *ingress) serve(ctx context.Context) error {
	factory := externalversions.NewSharedInformerFactory(i.client, 0)
	objects := factory.Networking().V1alpha1().Ingresses()
	changed := func(object any) { i.read(objects.Lister()); i.makeReady(ctx, object) }
	if _, err := objects.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(any) { i.read(objects.Lister()) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	transport := &http.Transport{
		MaxIdleConnsPerHost: 1000, IdleConnTimeout: 30 * time.Second,
		DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
	}
	return http.ListenAndServe(i.address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.forward(transport, w, r)
	}))
}

// read makes the table of routes anew from all Ingress objects of our class.
func (i *ingress) read(all listers.IngressLister) {
	list, _ := all.List(labels.Everything())
	routes := map[string][]v1alpha1.IngressBackendSplit{}
	for _, object := range list {
		if object.Annotations["networking.knative.dev/ingress.class"] != i.class &&
			object.Annotations["networking.knative.dev/ingress-class"] != i.class {
			continue
		}
		for _, rule := range object.Spec.Rules {
			if rule.HTTP == nil || len(rule.HTTP.Paths) == 0 {
				continue
			}
			// Paths that match a header are for tags; the last one carries the split of the traffic.
			path := rule.HTTP.Paths[len(rule.HTTP.Paths)-1]
			splits := make([]v1alpha1.IngressBackendSplit, len(path.Splits))
			for n, split := range path.Splits {
				headers := map[string]string{}
				for _, more := range []map[string]string{split.AppendHeaders, path.AppendHeaders} {
					for name, value := range more {
						headers[name] = value
					}
				}
				split.AppendHeaders = headers
				splits[n] = split
			}
			for _, host := range rule.Hosts {
				routes[host] = splits
			}
		}
	}
	i.lock.Lock()
	i.routes = routes
	i.lock.Unlock()
}

// makeReady sets the status that Route waits for.
func (i *ingress) makeReady(ctx context.Context, changed any) {
	object, ok := changed.(*v1alpha1.Ingress)
	if !ok || object.DeletionTimestamp != nil || (object.IsReady() && object.Status.ObservedGeneration == object.Generation) {
		return
	}
	object = object.DeepCopy()
	object.Status.InitializeConditions()
	object.Status.MarkNetworkConfigured()
	balancer := []v1alpha1.LoadBalancerIngressStatus{{IP: strings.Split(i.address, ":")[0]}}
	object.Status.MarkLoadBalancerReady(balancer, balancer)
	object.Status.ObservedGeneration = object.Generation
	if _, err := i.client.NetworkingV1alpha1().Ingresses(object.Namespace).UpdateStatus(ctx, object, meta.UpdateOptions{}); err != nil {
		log.Print("status: ", err)
	}
}

// endpoint is the address of one ready endpoint of the split's Service, in turn.
func (i *ingress) endpoint(split v1alpha1.IngressBackendSplit) string {
	port := ""
	if service, err := i.services.Services(split.ServiceNamespace).Get(split.ServiceName); err == nil {
		for _, p := range service.Spec.Ports {
			if p.Port == split.ServicePort.IntVal || p.Name == split.ServicePort.StrVal {
				port = p.Name
			}
		}
	}
	objects, _ := i.slices.ByIndex(byService, split.ServiceNamespace+"/"+split.ServiceName)
	var ready []string
	for _, object := range objects {
		slice := object.(*discovery.EndpointSlice)
		for _, p := range slice.Ports {
			if p.Name == nil || p.Port == nil || (*p.Name != port && len(slice.Ports) > 1) {
				continue
			}
			for _, one := range slice.Endpoints {
				if one.Conditions.Ready == nil || *one.Conditions.Ready {
					ready = append(ready, fmt.Sprintf("%s:%d", one.Addresses[0], *p.Port))
				}
			}
		}
	}
	if len(ready) == 0 {
		return ""
	}
	return ready[i.turn.Add(1)%uint64(len(ready))]
}

func (i *ingress) forward(transport http.RoundTripper, w http.ResponseWriter, r *http.Request) {
	i.lock.RLock()
	splits := i.routes[strings.Split(r.Host, ":")[0]]
	i.lock.RUnlock()
	if len(splits) == 0 {
		http.Error(w, "no route for this host", http.StatusNotFound)
		return
	}
	chosen, draw := splits[0], rand.Intn(100)
	for _, split := range splits {
		if draw -= split.Percent; draw < 0 {
			chosen = split
			break
		}
	}
	endpoint := i.endpoint(chosen)
	if endpoint == "" {
		http.Error(w, "no ready endpoint", http.StatusServiceUnavailable)
		return
	}
	proxy := httputil.ReverseProxy{
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: endpoint})
			p.Out.Host = r.Host
			p.SetXForwarded()
			for name, value := range chosen.AppendHeaders {
				p.Out.Header.Set(name, value)
			}
		},
	}
	proxy.ServeHTTP(w, r)
}
