# SPDX-License-Identifier: Apache-2.0
"""Runs under the interpreter that KUBERNETES_PYTHON names: prints what Kubernetes'
own models do not have of the objects in these files, a line for each object."""
import sys

import kubernetes.client
import yaml

API = kubernetes.client.ApiClient()
# Groups whose objects have models; others are extensions.
GROUPS = "v1", "apps/v1", "batch/v1"


def differs(thing):
    """Whether the model drops or changes a field."""
    model = "V1" + thing["kind"]
    if not hasattr(kubernetes.client, model):
        return True
    made = API._ApiClient__deserialize(thing, model)
    return API.sanitize_for_serialization(made) != thing


for path in sys.argv[1:]:
    with open(path) as f:
        for each in filter(None, yaml.safe_load_all(f)):
            if each["apiVersion"] in GROUPS and differs(each):
                print(path, each["kind"], each["metadata"]["name"])
