// SPDX-License-Identifier: Apache-2.0
// Validates objects of Kubernetes and of the Prometheus operator against their published schemas, which
// kubernetes-models has in compiled form. Prints a line for each: {"step": KIND, "error": what is wrong}.
//
//     node validate.mjs FILE
import fs from "node:fs";
import * as yaml from "js-yaml";
import * as v1 from "kubernetes-models/v1";
import * as apps from "kubernetes-models/apps/v1";
import * as monitoring from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const models = { v1, "apps/v1": apps, "monitoring.coreos.com/v1": monitoring };
let status = 0;
for (const object of yaml.loadAll(fs.readFileSync(process.argv[2], "utf8"))) {
	const said = { step: `${object.apiVersion} ${object.kind}` };
	try {
		new models[object.apiVersion][object.kind](object).validate();
	} catch (error) {
		said.error = error.message;
		status = 1;
	}
	console.log(JSON.stringify(said));
}
process.exitCode = status;
