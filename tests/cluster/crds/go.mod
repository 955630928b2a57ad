module sites.test/cluster/crds

go 1.26.0

// Only the custom resource definitions in these modules' folders are used, none of their code.
require (
	github.com/envoyproxy/gateway v1.9.1
	sigs.k8s.io/gateway-api v1.6.3
)
