// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

/// Texts about the operations, generated from their definitions, the devices' kernels and the conformance cases.
namespace moka::opdocs {

/// How often a kernel was asked for an operation, and its answers.
struct KernelUse {
  std::string name;
  int asked = 0, taken = 0;
  std::map<std::string, int> refusals;
};

/// How often a device was the first to be asked for an operation, and its answers.
struct DeviceUse {
  int asked = 0, taken = 0;
  std::map<std::string, int> refusals;  ///< refusals of all its kernels together
  std::vector<KernelUse> kernels;       ///< in the order of the device's list
};

/// What happened to the operations of the cases.
struct Support {
  std::vector<std::string> devices;                              ///< in the order in which they are asked
  std::vector<std::string> accelerators;                         ///< devices with their own memory
  bool complete = true;                                          ///< true: every accelerator has a driver
  std::map<std::string, std::map<std::string, DeviceUse>> uses;  ///< indexed by operation and device
  std::map<std::string, int> cases;                              ///< indexed by operation
};

/// Plans and runs every case of `golden` for every device. Throws std::runtime_error on a malformed case.
Support find_support(const std::string& golden);

/// File name -> text, below docs/. Without device-support.md when `support` is incomplete.
std::map<std::string, std::string> documents(const Support& support);
/// name -> opset -> parameters.
std::string operations_json();

/// Types of models and layers of networks: imported or not, cases, operations, kernels. Throws std::runtime_error on a
/// malformed file of `golden`, the folder tests/golden.
std::string models_markdown(const Support& support, const std::string& golden);
std::string support_markdown(const Support& support);
/// The rules of `moka lint`.
std::string rules_markdown();
/// docs/trace-rules.md
std::string trace_rules_markdown();
/// A section about the kernels that run one operation.
std::string kernels_markdown(const Support& support, const std::string& operation);

}  // namespace moka::opdocs
