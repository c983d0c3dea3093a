// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>

#include "bindings.h"
#include "interpreter.h"
#include "moka/compute_plan.h"
#include "moka/rates.h"

namespace moka::python {

namespace nb = nanobind;

void bind_plan(nb::module_& m) {
  nb::class_<UnitRates>(m, "UnitRates", "What a unit of this machine does in a second. Zero: not measured.")
      .def_ro("device", &UnitRates::device)
      .def_ro("unit", &UnitRates::unit, "'cpu' or 'gpu'.")
      .def_ro("description", &UnitRates::description)
      .def_ro("fp32", &UnitRates::fp32)
      .def_ro("fp16", &UnitRates::fp16)
      .def_ro("bytes", &UnitRates::bytes)
      .def_ro("launch", &UnitRates::launch)
      .def_ro("transfer", &UnitRates::transfer)
      .def_ro("transfer_bytes", &UnitRates::transfer_bytes)
      .def_ro("date", &UnitRates::date, "When they were measured, UTC. Empty: not measured.")
      .def_ro("disturbed", &UnitRates::disturbed,
              "Other work took processors; measure again when the machine is idle.");
  m.def(
      "read_rates",
      [](const std::string& file, int threads, const std::string& device) {
        return read_rates(file, threads, device).units;
      },
      nb::arg("file") = "", nb::arg("threads") = 0, nb::arg("device") = "", nb::call_guard<Unlocked>(),
      "The units of this machine with what the file has for them.");

  nb::class_<UnitBid>(m, "UnitBid", "What one device says of an operation.")
      .def_ro("device", &UnitBid::device)
      .def_ro("unit", &UnitBid::unit, "'cpu', 'gpu' or 'neuralEngine'.")
      .def_ro("seconds", &UnitBid::seconds, "As estimated.")
      .def_ro("refusal", &UnitBid::refusal, "'': it takes the operation.")
      .def_ro("remedy", &UnitBid::remedy, "What to write instead; '': not known.")
      .def_ro("source", &UnitBid::source, "The source of the rule; '': the device itself refuses.")
      .def_ro("rule", &UnitBid::rule, "The name of the rule that refuses or doubts; '': none does.")
      .def_ro("doubt", &UnitBid::doubt, "Why Core ML would probably prefer another unit; '': no rule says so.")
      .def("__repr__", [](const UnitBid& b) {
        return "<moka.UnitBid " + b.device + (b.refusal.empty() ? "" : " refuses: " + b.refusal) + ">";
      });

  nb::class_<PlannedRegion>(m, "PlannedRegion", "Operations that a device runs as one submission.")
      .def_ro("device", &PlannedRegion::device)
      .def_ro("operations", &PlannedRegion::operations)
      .def_ro("upload_bytes", &PlannedRegion::upload_bytes)
      .def_ro("download_bytes", &PlannedRegion::download_bytes)
      .def_ro("seconds", &PlannedRegion::seconds, "The time of its operations, as estimated.")
      .def_ro("launch", &PlannedRegion::launch, "Seconds of one submission.")
      .def_ro("saves", &PlannedRegion::saves, "Seconds; inf: the host cannot run them, or pins forbid it.")
      .def("__repr__", [](const PlannedRegion& r) {
        return "<moka.PlannedRegion of " + std::to_string(r.operations) +
               (r.operations == 1 ? " operation on " : " operations on ") + r.device + ": " +
               std::to_string(r.upload_bytes) + " bytes in, " + std::to_string(r.download_bytes) + " out>";
      });

  nb::class_<PlannedPin>(m, "PlannedPin", "A pin, and what it matches in the optimized program.")
      .def_ro("operations", &PlannedPin::operations)
      .def_ro("device", &PlannedPin::device)
      .def_ro("matched", &PlannedPin::matched, "How many operations.")
      .def_ro("decided", &PlannedPin::decided, "How many of them no later pin matches.")
      .def_ro("note", &PlannedPin::note,
              "What became of operations that were fused or folded; what is near if it matches none.")
      .def("__repr__", [](const PlannedPin& p) {
        return "<moka.PlannedPin " + p.operations + "=" + p.device + ": " + std::to_string(p.matched) +
               (p.matched == 1 ? " operation>" : " operations>");
      });

  nb::class_<PlannedCost>(m, "PlannedCost", "What the choice between units compared, in seconds.")
      .def_ro("compute", &PlannedCost::compute)
      .def_ro("transfers", &PlannedCost::transfers)
      .def_ro("launches", &PlannedCost::launches)
      .def_ro("on_host", &PlannedCost::on_host)
      .def_ro("is_optimal", &PlannedCost::is_optimal)
      .def("__repr__", [](const PlannedCost& c) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "<moka.PlannedCost compute %.3g s, transfers %.3g s, launches %.3g s; on the host %.3g s>",
                      c.compute, c.transfers, c.launches, c.on_host);
        return std::string(text);
      });

  nb::class_<PlannedOperation> step(
      m, "PlannedOperation", "One step of a plan: an operation on a device, or a conversion that the planner added.");
  bind_report(step, "step_text", "step_html");
  step.def_ro("name", &PlannedOperation::name)
      .def_ro("type", &PlannedOperation::type)
      .def_ro("device", &PlannedOperation::device)
      .def_ro("kernel", &PlannedOperation::kernel)
      .def_ro("note", &PlannedOperation::note)
      .def_ro("fused", &PlannedOperation::fused, "Names of the operations that it also computes.")
      .def_ro("refusals", &PlannedOperation::refusals, "'device: reason' for each device asked before.")
      .def_ro("outputs", &PlannedOperation::outputs)
      .def_ro("layout", &PlannedOperation::layout)
      .def_ro("estimated_seconds", &PlannedOperation::estimated_seconds)
      .def_ro("measured_seconds", &PlannedOperation::measured_seconds, "-1 when not measured.")
      .def_ro("runs", &PlannedOperation::runs)
      .def_ro("chosen_by", &PlannedOperation::chosen_by, "'rule', 'pin', 'cache', 'measured' or 'disturbed'.")
      .def_ro("shape", &PlannedOperation::shape, "What the candidates' times are for; '': none.")
      .def_ro("kernel_by_rule", &PlannedOperation::kernel_by_rule)
      .def_prop_ro(
          "candidates",
          [](const PlannedOperation& p) {
            nb::typed<nb::dict, nb::str, nb::float_> out;
            for (const KernelTime& t : p.candidates) out[t.kernel.c_str()] = t.seconds;
            return out;
          },
          "Measured seconds by kernel.")
      .def_ro("depth", &PlannedOperation::depth)
      .def_ro("bids", &PlannedOperation::bids, "What each device that was asked says, the host's first.")
      .def_ro("region", &PlannedOperation::region, "Index in ComputePlan.regions; -1: on the host.")
      .def_ro("bytes", &PlannedOperation::bytes, "The bytes of a transfer.")
      .def_ro("reason", &PlannedOperation::reason, "Why the cut lies where a transfer is.");

  nb::class_<PassRemark>(m, "PassRemark")
      .def_ro("pass_name", &PassRemark::pass)
      .def_ro("text", &PassRemark::text)
      .def("__repr__", [](const PassRemark& r) { return r.pass + ": " + r.text; });

  nb::class_<MemoryUse>(m, "MemoryUse", "Bytes of memory that a loaded model holds.")
      .def_ro("mapped", &MemoryUse::mapped, "Weights in mapped files.")
      .def_ro("packed", &MemoryUse::packed, "Weights packed for kernels.")
      .def_ro("constants", &MemoryUse::constants, "Other large constants.")
      .def_ro("arenas", &MemoryUse::arenas, "Values of predictions, and converted inputs.")
      .def_ro("heap", &MemoryUse::heap, "By how much the heap grew while the model was loaded.")
      .def_ro("shared", &MemoryUse::shared,
              "Packed weights and constants that another model of the same file made; not part of total.")
      .def_prop_ro("total", &MemoryUse::total);

  nb::class_<ComputePlan> plan(m, "ComputePlan", "Where everything runs and why.");
  bind_report(plan, "plan_text", "plan_html");
  plan.def_ro("operations", &ComputePlan::operations)
      .def_ro("remarks", &ComputePlan::remarks)
      .def_ro("regions", &ComputePlan::regions)
      .def_ro("pins", &ComputePlan::pins, "The configuration's pins, in their order.")
      .def_ro("cost", &ComputePlan::cost)
      .def_ro("rates", &ComputePlan::rates, "Where the costs are from: a file, or 'table'.")
      .def_ro("operations_in_source", &ComputePlan::operations_in_source)
      .def_ro("folded", &ComputePlan::folded, "Operations whose results were known before running.")
      .def_ro("arena_bytes", &ComputePlan::arena_bytes)
      .def_ro("unshared_bytes", &ComputePlan::unshared_bytes)
      .def_ro("packed_bytes", &ComputePlan::packed_bytes)
      .def_ro("cached_bytes", &ComputePlan::cached_bytes)
      .def_ro("memory", &ComputePlan::memory, "The bytes that the model holds, with all its plans and sessions.")
      .def_ro("measured_seconds", &ComputePlan::measured_seconds,
              "Time of a whole prediction, the median; -1 when not measured.")
      .def_ro("predictions", &ComputePlan::predictions, "How many were measured.")
      .def_ro("complete", &ComputePlan::complete,
              "False: what depends on values is planned when a prediction knows them.");
}

}  // namespace moka::python
