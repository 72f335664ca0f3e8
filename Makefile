# Names that people of other providers know; each is one command of ours.
.PHONY: docker-build deploy undeploy test

# The image as an OCI archive; no daemon is asked. Its path, digest and size are printed.
docker-build:
	cargo xtask image

# Installs the provider where the current kubeconfig leads. MAAS_ENDPOINT and MAAS_API_KEY are the MAAS of clusters that name none. They are
# taken from the environment alone, not from clusterctl's own file; without both, a Secret that holds them already stays as it is. Nothing
# is applied unless everything could be filled in, and nothing over the Deployment of the Go provider, which has the same name and cannot
# be changed into ours. A provider that runs is started again when its Secret is another: it finds a new key by itself, and no new address.
deploy:
	@for program in clusterctl kubectl; do \
		command -v $$program > /dev/null || { echo "error: make deploy needs $$program on the PATH" >&2; exit 1; }; \
	done
	@case "$${MAAS_ENDPOINT:+endpoint}$${MAAS_API_KEY:+key}" in endpoint|key) \
		echo "error: MAAS_ENDPOINT and MAAS_API_KEY belong together: set both, or none to leave the Secret as it is" >&2; exit 1;; \
	esac
	@components=$$(MAAS_ENDPOINT=$$MAAS_ENDPOINT MAAS_API_KEY=$$MAAS_API_KEY \
			clusterctl generate yaml --from manifests/infrastructure-maas/infrastructure-components.yaml) && \
		found=$$(kubectl get deployment capmaas-controller-manager --namespace capmaas-system --ignore-not-found \
			--output 'jsonpath={.spec.selector.matchLabels.control-plane}') && \
		case "$$found" in ''|capmaas-controller-manager) ;; *) \
			echo "error: the Go provider is installed there. docs/migration.md says how to put this one in its place; first of all:" >&2; \
			echo "  kubectl delete deployment capmaas-controller-manager --namespace capmaas-system" >&2; exit 1;; \
		esac && \
		{ [ -n "$$MAAS_API_KEY" ] && chosen= || chosen='app.kubernetes.io/component!=credentials'; } && \
		credentials() { kubectl get secret capmaas-manager-bootstrap-credentials --namespace capmaas-system --ignore-not-found \
			--output 'jsonpath={.data}'; } && \
		before=$$(credentials) && \
		printf "%s\n" "$$components" | kubectl apply --server-side --force-conflicts --selector "$$chosen" --filename - && \
		after=$$(credentials) && \
		case "$$found" in '') ;; *) [ "$$before" = "$$after" ] || \
			kubectl rollout restart deployment capmaas-controller-manager --namespace capmaas-system;; \
		esac

# Removes it, its kinds and what else is of these kinds. Not while there are clusters or machines: with nobody to give their machines back
# they would stay in MAAS, and the objects would wait for ever.
undeploy:
	@for kind in maasclusters maasmachines; do \
		known=$$(kubectl get customresourcedefinition $$kind.infrastructure.cluster.x-k8s.io --ignore-not-found --output name) || exit 1; \
		[ -z "$$known" ] || left=$$(kubectl get $$kind --all-namespaces --ignore-not-found --output name) || exit 1; \
		[ -z "$$left" ] || { echo "error: there are still $$kind; delete their clusters first:" >&2; echo "$$left" >&2; exit 1; }; \
	done
	kubectl delete --ignore-not-found --filename manifests/infrastructure-maas/infrastructure-components.yaml

test:
	cargo xtask test
