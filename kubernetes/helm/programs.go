//go:build tools

// The main package that is built from this module as it is; importing it here keeps its dependencies in go.mod and go.sum.
package main

import _ "helm.sh/helm/v4/cmd/helm"
