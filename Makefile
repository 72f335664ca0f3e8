# Names that people of other providers know; each is one command of ours.
.PHONY: docker-build deploy undeploy test

# The image as an OCI archive; no daemon is asked. Its path, digest and size are printed.
docker-build:
	cargo xtask image

# Installs the provider where the current kubeconfig leads. MAAS_ENDPOINT and MAAS_API_KEY are the MAAS of clusters that name none.
# Nothing is applied unless everything could be filled in.
deploy:
	@for program in clusterctl kubectl; do \
		command -v $$program > /dev/null || { echo "error: make deploy needs $$program on the PATH" >&2; exit 1; }; \
	done
	components=$$(clusterctl generate yaml --from manifests/infrastructure-maas/infrastructure-components.yaml) && \
		printf "%s\n" "$$components" | kubectl apply --server-side --filename -

# Removes it, its kinds and all objects of these kinds: delete clusters first.
undeploy:
	kubectl delete --ignore-not-found --filename manifests/infrastructure-maas/infrastructure-components.yaml

test:
	cargo xtask test
