package main

import (
	"log"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	core "k8s.io/client-go/listers/core/v1"
)

// serveNames answers <service>.<namespace>.svc.cluster.local with the Service's address, and everything else with
// "no such name".
func serveNames(listen string, services core.ServiceLister) {
	socket, err := net.ListenPacket("udp", listen)
	if err != nil {
		log.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for {
		length, from, err := socket.ReadFrom(buffer)
		if err != nil {
			continue
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:length]) != nil || len(question.Questions) == 0 {
			continue
		}
		reply := answerName(question, services)
		if packed, err := reply.Pack(); err == nil {
			socket.WriteTo(packed, from)
		}
	}
}

func answerName(message dnsmessage.Message, services core.ServiceLister) dnsmessage.Message {
	question := message.Questions[0]
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: message.ID, Response: true, Authoritative: true, RecursionAvailable: true,
			RecursionDesired: message.RecursionDesired, RCode: dnsmessage.RCodeNameError,
		},
		Questions: message.Questions[:1],
	}
	parts := strings.Split(strings.TrimSuffix(strings.ToLower(question.Name.String()), "."), ".")
	if len(parts) != 5 || strings.Join(parts[2:], ".") != "svc.cluster.local" {
		return reply
	}
	service, err := services.Services(parts[1]).Get(parts[0])
	if err != nil {
		return reply
	}
	reply.RCode = dnsmessage.RCodeSuccess
	if ip := net.ParseIP(service.Spec.ClusterIP).To4(); ip != nil && question.Type == dnsmessage.TypeA {
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 1}
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte(ip)}}}
	}
	return reply
}
