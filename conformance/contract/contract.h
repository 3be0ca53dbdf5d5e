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
/// Contract cases: what backend.h, program.h and tables.h promise beyond the meaning of ops, asked of a backend's table
/// directly. Each failure quotes the sentence that is broken.

namespace collet::conformance {

/// The sentences of promises.def.
enum class Promise : uint16_t {
#define COLLET_PROMISE(id, header, text) id,
#define COLLET_PROMISE_SINCE(id, minor, header, text) id,
#include "conformance/contract/promises.def"
};

struct PromiseInfo {
  std::string_view id, header, text;
  uint32_t minor = 0;  ///< smallest minor version of the ABI that a backend states which is held to it
};
const PromiseInfo& promise_info(Promise promise);
/// All of them.
const std::vector<PromiseInfo>& promises();

/// The backend that a case asks, and what the case found out. Any thread may complain.
class Contract {
 public:
  explicit Contract(Plugin& plugin) : plugin_(plugin) {}
  Plugin& plugin() { return plugin_; }

  /// Notes a broken promise unless `good`; returns `good`. What a backend of this version need not keep counts as kept.
  template <typename... Arguments>
  bool check(bool good, Promise promise, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    if (!good && holds(promise)) note(promise, fmt::format(text, std::forward<Arguments>(arguments)...));
    return good;
  }
  /// Whether the backend is held to the promise.
  bool holds(Promise promise) const;
  /// What a backend is held to that says by `refuses` that it looks at such mistakes: `promise` where its version of the ABI has
  /// it, else ERRORS, since a call that reports success for one mistake and refuses its like has not done what it reports.
  /// Nullopt for a backend of an older version that looks at none of them.
  std::optional<Promise> judged_by(Promise promise, bool refuses) const;
  /// What forbids an out argument of a handle to be set after an error: before minor version 1, that an error changes nothing.
  Promise out_arguments() const {
    return holds(Promise::OUT_ARGUMENTS) ? Promise::OUT_ARGUMENTS : Promise::ERROR_CHANGES_NOTHING;
  }
  /// Notes that a call gave UNAVAILABLE, and what it said.
  void note_lost(std::string_view call, std::string_view message);
  /// Whether one did.
  bool lost() const;
  /// What a case does to set itself up: a device that is lost meanwhile makes the case one that was not asked. For cases that
  /// expect the loss; in all others it is a failure, and complaints that follow from it are left out.
  void begin_set_up() { set_up_ = true; }
  void end_set_up() { set_up_ = false; }

  /// The case does not concern this backend.
  void skip(std::string why);
  /// The case itself is at fault.
  void fault(const Status& status);

  /// Notes what the device was asked, or has run.
  void note_use(const Uses::Key& key, const Uses::Use& use);
  Uses uses() const;

  bool broken() const;
  /// Complaints, or why the case was skipped.
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
  std::string program = {};  ///< HLO text without the first line, where it is about one
};

/// What a case does, the sentences that it is about, and its program, for people.
std::string describe_case(const ContractCase& one);

/// The sentences that a case is about, in one line.
std::string promises_of(std::string_view name);

/// The case that leaves an instance open. It is run in a process of its own, which must then end well.
constexpr std::string_view kLeftOpen = "contract/lifecycle/left_open";

/// All contract cases, in the order of the families below.
const std::vector<ContractCase>& contract_cases();

#define COLLET_CONTRACT_FAMILY(name) void add_##name##_contracts(std::vector<ContractCase>& list);
#include "conformance/contract/families.def"

}  // namespace collet::conformance
