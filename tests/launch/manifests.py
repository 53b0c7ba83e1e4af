# SPDX-License-Identifier: BSD-3-Clause
"""manifests.py PAGE DIR: the manifests of docs/kubernetes.md. Each has to fit to what it names, and to need no
privilege. What a cluster would make of it is written to DIR/KIND:

    pods     the host name of each pod; pod i has the address 10.77.0.(i + 1)
    hosts    the names of all pods, as lines of /etc/hosts
    run.I    what pod I runs, with the variables that the cluster sets and those of the manifest
"""
import pathlib
import re
import shlex
import sys
from typing import Any

import yaml

Manifest = dict[str, Any]
SECRET = "a secret of more than sixteen bytes"


def only_container(pod: Manifest, adds: list[str]) -> Manifest:
    """Of a pod that satisfies the restricted Pod Security Standard, and says what it needs."""
    (container,) = pod["containers"]
    security, own = pod["securityContext"], container["securityContext"]
    assert security["runAsNonRoot"] is True and security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["allowPrivilegeEscalation"] is False and "privileged" not in own
    assert own["capabilities"]["drop"] == ["ALL"] and own["capabilities"].get("add", []) == adds
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & pod.keys()
    requests, limits = container["resources"]["requests"], container["resources"]["limits"]
    assert requests.keys() == {"cpu", "memory"} and re.fullmatch(r"[1-9]\d*m?", requests["cpu"])
    assert limits == {"memory": requests["memory"]} and re.fullmatch(r"[1-9]\d*[MG]i", limits["memory"])
    assert re.fullmatch(r"[\w-]+:\d+", container["image"])
    return container


def variables(container: Manifest, secret: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            key = variable["valueFrom"]["secretKeyRef"]
            assert (key["name"], key["key"]) == secret
            values[variable["name"]] = SECRET
        else:
            values[variable["name"]] = variable["value"]
    # Kubernetes would put in the values of these.
    for text in [*values.values(), *container["command"]]:
        assert not re.search(r"\$\([A-Za-z_]", text)
    return values


def write(out: pathlib.Path, pods: list[str], domain: str, runs: list[str]) -> None:
    out.mkdir()
    (out / "pods").write_text("".join(f"{pod}\n" for pod in pods))
    (out / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
        f"10.77.0.{index + 1} {pod}.{domain}\n" for index, pod in enumerate(pods)))
    for index, run in enumerate(runs):
        (out / f"run.{index}").write_text(run)


def script(values: dict[str, str], container: Manifest) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()) + \
        f"exec {shlex.join(container['command'])}\n"


def indexed(job: Manifest, name: str, domain: str, per_pod: int, secret: tuple[str, ...], out: pathlib.Path) -> None:
    """A Job whose pods are NAME-0, NAME-1, ... in the domain, with so many ranks in each."""
    npods = job["completions"]
    assert job["completionMode"] == "Indexed" and job["parallelism"] == npods
    assert job["backoffLimit"] == 0 and job["template"]["spec"]["restartPolicy"] == "Never"
    container = only_container(job["template"]["spec"], [])
    values = variables(container, secret)
    assert values.keys() == {"WORLD_SIZE", "TUTTI_COMM_ID", "TUTTI_COMM_SECRET"}
    assert values["WORLD_SIZE"] == str(npods * per_pod)
    (port,) = container["ports"]
    assert values["TUTTI_COMM_ID"] == f"{name}-0.{domain}:{port['containerPort']}"
    write(out, [f"{name}-{index}" for index in range(npods)], domain,
          [script({"JOB_COMPLETION_INDEX": str(index), **values}, container) for index in range(npods)])


def check_job(service: Manifest, job: Manifest, secret: tuple[str, ...], out: pathlib.Path) -> None:
    name = job["metadata"]["name"]
    assert (service["apiVersion"], service["kind"]) == ("v1", "Service")
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"] == {"job-name": name}
    domain = job["spec"]["template"]["spec"]["subdomain"]
    assert service["metadata"]["name"] == domain
    indexed(job["spec"], name, domain, 1, secret, out)


def check_jobset(jobset: Manifest, secret: tuple[str, ...], out: pathlib.Path) -> None:
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    network = jobset["spec"]["network"]
    assert network["enableDNSHostnames"] is True and network["publishNotReadyAddresses"] is True
    (job,) = jobset["spec"]["replicatedJobs"]
    assert job["replicas"] == 1 and "subdomain" not in job["template"]["spec"]["template"]["spec"]
    name = f"{jobset['metadata']['name']}-{job['name']}-0"
    indexed(job["template"]["spec"], name, network["subdomain"], 2, secret, out)


def check_mpijob(job: Manifest, out: pathlib.Path) -> None:
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    name, spec = job["metadata"]["name"], job["spec"]
    assert spec["mpiImplementation"] == "OpenMPI"
    assert spec["runPolicy"] == {"backoffLimit": 0, "cleanPodPolicy": "Running"}
    launcher, worker = (spec["mpiReplicaSpecs"][kind] for kind in ("Launcher", "Worker"))
    assert launcher["replicas"] == 1 and launcher["restartPolicy"] == worker["restartPolicy"] == "Never"
    mpirun = only_container(launcher["template"]["spec"], [])
    sshd = only_container(worker["template"]["spec"], ["NET_BIND_SERVICE"])
    assert "env" not in mpirun and "env" not in sshd and mpirun["image"] == sshd["image"]
    slots, nworkers = spec["slotsPerWorker"], worker["replicas"]
    command = mpirun["command"]
    assert command[0] == "mpirun" and command[command.index("-n") + 1] == str(slots * nworkers)
    assert spec["launcherCreationPolicy"] == "WaitForWorkersReady"
    (port,) = sshd["ports"]
    assert sshd["readinessProbe"] == {"tcpSocket": {"port": port["containerPort"]}}
    home = pathlib.PurePath(sshd["command"][sshd["command"].index("-f") + 1]).parent
    assert spec["sshAuthMountPath"] == str(home / ".ssh")
    # What version 0.8 of the operator adds; its file of hosts lies in /etc/mpi.
    domain = f"{name}.default.svc"
    workers = [f"{name}-worker-{index}" for index in range(nworkers)]
    write(out, [f"{name}-launcher", *workers], domain, [script({
        "K_MPI_JOB_ROLE": "launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_default_hostfile": "/mnt/hostfile",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }, mpirun)])
    (out / "hostfile").write_text("".join(f"{pod}.{domain} slots={slots}\n" for pod in workers))


def main() -> None:
    page, out = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    found = re.search(r"create secret generic (\S+) --from-literal=(\w+)=", page)
    assert found
    secret = found.groups()
    job, jobset, mpijob = (list(yaml.safe_load_all(text)) for text in re.findall(r"```yaml\n(.*?)```", page, re.S))
    check_job(*job, secret, out / "Job")
    check_jobset(*jobset, secret, out / "JobSet")
    check_mpijob(*mpijob, out / "MPIJob")


main()
