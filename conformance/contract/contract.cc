// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/contract.h"

#include <fnmatch.h>

#include <algorithm>

namespace collet::conformance {
namespace {

constexpr size_t kMostComplaints = 4;

}  // namespace

const std::vector<PromiseInfo>& promises() {
  static const std::vector<PromiseInfo> all = {
#define COLLET_PROMISE(id, header, text) {#id, header, text, 0},
#define COLLET_PROMISE_SINCE(id, minor, header, text) {#id, header, text, minor},
#include "conformance/contract/promises.def"
  };
  return all;
}

const PromiseInfo& promise_info(Promise promise) {
  return promises()[static_cast<size_t>(promise)];
}

bool Contract::holds(Promise promise) const {
  return plugin_.table().abi_minor >= promise_info(promise).minor;
}

std::optional<Promise> Contract::judged_by(Promise promise, bool refuses) const {
  if (holds(promise)) return promise;
  return refuses ? std::optional(Promise::ERRORS) : std::nullopt;
}

void Contract::note(Promise promise, std::string what) {
  const PromiseInfo& info = promise_info(promise);
  const std::lock_guard lock(mutex_);
  if (set_up_ && !lost_.empty()) return;
  if (complaints_.size() < kMostComplaints)
    complaints_.push_back(fmt::format("{}; {}: \"{}\"", what, info.header, info.text));
}

void Contract::note_lost(std::string_view call, std::string_view message) {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) return;
  lost_ = fmt::format("{} said that the device is lost: {}", call, message);
  if (set_up_) skipped_ = lost_ + "; that was while the case was set up: let it fail later";
}

bool Contract::lost() const {
  const std::lock_guard lock(mutex_);
  return !lost_.empty();
}

void Contract::skip(std::string why) {
  const std::lock_guard lock(mutex_);
  if (skipped_.empty()) skipped_ = std::move(why);
}

void Contract::note_use(const Uses::Key& key, const Uses::Use& use) {
  const std::lock_guard lock(mutex_);
  uses_.note(key, use);
}

Uses Contract::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

bool Contract::broken() const {
  const std::lock_guard lock(mutex_);
  return !complaints_.empty();
}

void Contract::fault(const Status& status) {
  const std::lock_guard lock(mutex_);
  fault_ = status.to_string();
}

std::string_view Contract::outcome() const {
  const std::lock_guard lock(mutex_);
  return !complaints_.empty() ? "fail" : !fault_.empty() ? "oracle" : !skipped_.empty() ? "unsupported" : "pass";
}

std::string Contract::text() const {
  const std::lock_guard lock(mutex_);
  if (complaints_.empty()) return fault_.empty() ? skipped_ : fault_;
  return fmt::format("{}{}{}", fmt::join(complaints_, "\n"), lost_.empty() ? "" : "\n", lost_);
}

namespace {

struct Steps {
  const char *glob, *text;
  std::vector<Promise> promises;
};

const std::vector<Steps>& steps() {
  using enum Promise;
  static const std::vector<Steps> all = {
#define COLLET_STEPS(glob, text, ...) {"contract/" glob, text, {__VA_ARGS__}},
#include "conformance/contract/steps.def"
  };
  return all;
}

const Steps* steps_of(std::string_view name) {
  const auto found = std::find_if(steps().begin(), steps().end(), [&](const Steps& entry) {
    return fnmatch(entry.glob, std::string(name).c_str(), 0) == 0;
  });
  return found == steps().end() ? nullptr : &*found;
}

}  // namespace

std::string promises_of(std::string_view name) {
  std::string out;
  if (const Steps* found = steps_of(name)) {
    for (const Promise promise : found->promises)
      out += fmt::format("{}{}: \"{}\"", out.empty() ? "" : ", ", promise_info(promise).header,
                         promise_info(promise).text);
  }
  return out;
}

std::string describe_case(const ContractCase& one) {
  std::string out;
  if (const Steps* found = steps_of(one.name)) {
    out += std::string(found->text) + "\n";
    for (const Promise promise : found->promises)
      out += fmt::format("  {}: \"{}\"\n", promise_info(promise).header, promise_info(promise).text);
  }
  return one.program.empty() ? out : out + "\n" + one.program;
}

const std::vector<ContractCase>& contract_cases() {
  static const std::vector<ContractCase> all = [] {
    std::vector<ContractCase> list;
#define COLLET_CONTRACT_FAMILY(name) add_##name##_contracts(list);
#include "conformance/contract/families.def"
    for (ContractCase& one : list) one.name.insert(0, "contract/");
    return list;
  }();
  return all;
}

}  // namespace collet::conformance
