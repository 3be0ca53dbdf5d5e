// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract/plugin.h"
#include "conformance/contract/uses.h"

/// \file
/// Contract cases: test directly on a backend's table what backend.h, program.h and tables.h promise beyond the meaning
/// of ops. Each failure quotes the sentence that is broken.
namespace collet::conformance {

/// The sentences of the headers that promises.def lists.
enum class Promise : uint16_t {
#define COLLET_PROMISE(id, header, text) id,
#define COLLET_PROMISE_SINCE(id, minor, header, text) id,
#include "conformance/contract/promises.def"
};

struct PromiseInfo {
  std::string_view id, header, text;
  uint32_t minor = 0;  ///< a backend must keep the promise if it states at least this minor version of the ABI
};
const PromiseInfo& promise_info(Promise promise);
/// Returns all promises.
const std::vector<PromiseInfo>& promises();

/// The backend that a case tests, and the outcome of the case. Any thread may record failures.
class Contract {
 public:
  explicit Contract(Plugin& plugin) : plugin_(plugin) {}
  Plugin& plugin() { return plugin_; }

  /// Records a broken promise unless `good`, and returns `good`. Promises that a backend of this version need not keep count as
  /// kept.
  template <typename... Arguments>
  bool check(bool good, Promise promise, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!good && holds(promise)) note(promise, fmt::format(text, std::forward<Arguments>(arguments)...));
    return good;
  }
  /// True if the backend states a newer minor version than the suite knows. Its structs may have members where those of a newer
  /// SDK are simulated.
  bool is_newer() const { return plugin_.table().abi_minor > COLLET_ABI_MINOR; }
  /// True if the backend must keep the promise.
  bool holds(Promise promise) const;
  /// Returns the promise by which a check of bad input is judged. It is `promise` if the backend's version of the ABI has it.
  /// For an older version it is ERRORS if the backend refuses some of these mistakes, as `refuses` says: it must then refuse
  /// the others too. It is nullopt if an older backend refuses none of them.
  std::optional<Promise> judged_by(Promise promise, bool refuses) const;
  /// Returns the promise that is broken if an out argument for a handle is set after an error. Before minor version 1
  /// it is that an error changes nothing.
  Promise out_arguments() const {
    return holds(Promise::OUT_ARGUMENTS) ? Promise::OUT_ARGUMENTS : Promise::ERROR_CHANGES_NOTHING;
  }
  /// Records that a call returned UNAVAILABLE, with its message.
  void note_lost(std::string_view call, std::string_view message);
  /// True if a call returned UNAVAILABLE.
  bool lost() const;
  /// Begins the set-up of a case that expects the device to be lost. If the device is lost during the set-up, the case
  /// counts as not tested. In all other cases a lost device is a failure, and failures that follow from it are not
  /// reported.
  void begin_set_up() { set_up_ = true; }
  void end_set_up() { set_up_ = false; }

  /// Skips the case: it does not concern this backend.
  void skip(std::string why);
  /// Records that the case itself is wrong.
  void fault(const Status& status);

  /// Records a question to the device, or an op that ran.
  void note_use(const Uses::Key& key, const Uses::Use& use);
  Uses uses() const;

  bool broken() const;
  /// Returns the failures, or the reason why the case was skipped.
  std::string text() const;
  /// "pass", "fail", "unsupported" or "oracle".
  std::string_view outcome() const;

 private:
  void note(Promise promise, std::string what);

  Plugin& plugin_;
  mutable std::mutex mutex_;
  std::vector<std::string> complaints_;
  Uses uses_;
  std::string skipped_, fault_;
  std::string lost_;
  bool set_up_ = false;
};

struct ContractCase {
  std::string name;  ///< "contract/copy/host_offset"
  std::function<void(Contract&)> run;
  std::string program = {};  ///< HLO text without the first line, if the case is about one program
};

/// Describes what a case does, which sentences it checks, and its program.
std::string describe_case(const ContractCase& one);

/// Returns the sentences that a case checks, in one line.
std::string promises_of(std::string_view name);

/// The case that leaves an instance open. It runs in a process of its own, which must then exit normally.
constexpr std::string_view kLeftOpen = "contract/lifecycle/left_open";

/// Returns all contract cases, in the order of families.def.
const std::vector<ContractCase>& contract_cases();

#define COLLET_CONTRACT_FAMILY(name) void add_##name##_contracts(std::vector<ContractCase>& list);
#include "conformance/contract/families.def"

}  // namespace collet::conformance
