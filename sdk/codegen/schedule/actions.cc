// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/schedule/actions.h"

#include <collet/codegen/kernel_text.h>
#include <collet/codegen/kernel_verify.h>
#include <collet/hash.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "sdk/codegen/kernel/passes.h"

namespace collet::codegen {
namespace {

/// Returns the words of a text.
std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  std::vector<std::string> out;
  for (size_t at = text.find_first_not_of(kSpaces); at != text.npos; at = text.find_first_not_of(kSpaces, at)) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

/// Removes the schedule of a kernel, with its lanes.
void remove_schedule(Kernel& k) {
  clear_schedule(k);
  k.lanes = 1;
  k.lane_loop = k.loops.size();
}

/// Applies actions to a kernel, which has no schedule at the begin.
class Actions {
 public:
  explicit Actions(Kernel& kernel) : k_(kernel) { remove_schedule(k_); }

  /// Returns null, or what is wrong with the action.
  const char* apply(const std::vector<std::string>& words) {
    const std::string& name = words[0];
    const size_t n = words.size();
    if (name == "no" && n == 2 && words[1] == "lanes") return nullptr;
    if (name == "scalable" && n == 1) return (k_.scalable = true), nullptr;
    if (name == "unordered" && n == 1) return (k_.unordered = true), nullptr;
    if (name == "unroll" && n == 1) return unroll();
    if (name == "lanes" && n == 3) return lanes(words);
    if (name == "interleave" && n == 3) return interleave(words);
    if (name == "transpose" && n == 2) return transpose(words);
    if (name == "strip" && n == 3) return strip(words);
    if (name == "pass" && n == 6) return pass(words);
    if (name == "keep" && n > 1) return keep(words);
    if (name == "past_caches" && n == 2) return past_caches(words);
    return "it is no action, or has another number of words";
  }

  void finish() { std::sort(k_.kept.begin(), k_.kept.end()); }

 private:
  static constexpr int64_t kMost = INT32_MAX;

  Loop* loop(const std::string& word) {
    return read_number(word, "i", 0, static_cast<int64_t>(k_.loops.size()) - 1, number_) ? &k_.loops[index()] : nullptr;
  }
  size_t index() const { return static_cast<size_t>(number_); }

  const char* unroll() {
    if (k_.outer == k_.loops.size()) return "there are no inner loops";
    for (size_t l = k_.outer; l < k_.loops.size(); ++l) k_.loops[l].kind = LoopKind::kUnroll;
    return nullptr;
  }

  const char* lanes(const std::vector<std::string>& words) {
    if (!loop(words[1])) return "there is no such loop";
    k_.lane_loop = index();
    if (!read_number(words[2], "", 1, kMost, number_)) return "lanes are a number of at least 1";
    k_.lanes = static_cast<int>(number_);
    return nullptr;
  }

  const char* interleave(const std::vector<std::string>& words) {
    Loop* const l = loop(words[1]);
    if (!l) return "there is no such loop";
    if (!read_number(words[2], "", 2, kMost, number_)) return "at least 2 iterations are interleaved";
    l->kind = LoopKind::kInterleave;
    l->factor = static_cast<int>(number_);
    return nullptr;
  }

  const char* transpose(const std::vector<std::string>& words) {
    Loop* const l = loop(words[1]);
    if (!l) return "there is no such loop";
    l->kind = LoopKind::kTranspose;
    return nullptr;
  }

  const char* strip(const std::vector<std::string>& words) {
    Loop* const l = loop(words[1]);
    if (!l) return "there is no such loop";
    return read_number(words[2], "", 1, INT64_MAX, l->strip) ? nullptr : "a strip has at least 1 iteration";
  }

  const char* pass(const std::vector<std::string>& words) {
    const int last = KernelPasses(k_).last();
    int64_t which = 0, lanes = 0, together = 0;
    if (!read_number(words[1], "", 0, last, which)) return "there is no such pass";
    const bool reads = words[2] == "lanes" && read_number(words[3], "", 1, kMost, lanes) && words[4] == "together" &&
                       read_number(words[5], "", 1, kMost, together);
    if (!reads) return "a pass is 'pass N lanes N together N'";
    if (k_.passes.empty()) k_.passes.assign(static_cast<size_t>(last) + 1, {k_.lanes, 1});
    k_.passes[static_cast<size_t>(which)] = {static_cast<int>(lanes), static_cast<int>(together)};
    return nullptr;
  }

  const char* keep(const std::vector<std::string>& words) {
    for (size_t i = 1; i < words.size(); ++i) {
      if (!read_number(words[i], "%", 0, static_cast<int64_t>(k_.exprs.size()) - 1, number_))
        return "there is no such expression";
      k_.kept.push_back(static_cast<ExprId>(number_));
    }
    return nullptr;
  }

  const char* past_caches(const std::vector<std::string>& words) {
    bool any = false;
    for (Store& s : k_.stores) {
      if (words[1] != "b" + std::to_string(s.buffer)) continue;
      s.bypasses_caches = any = true;
    }
    return any ? nullptr : "there is no store to such a buffer";
  }

  Kernel& k_;
  int64_t number_ = 0;
};

std::string text_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

}  // namespace

bool read_number(const std::string& word, std::string_view prefix, int64_t least, int64_t most, int64_t& out) {
  if (!word.starts_with(prefix)) return false;
  const char* const begin = word.data() + prefix.size();
  const char* const end = word.data() + word.size();
  const auto [last, error] = std::from_chars(begin, end, out);
  return error == std::errc() && last == end && begin != end && out >= least && out <= most;
}

Status for_each_action(std::string_view actions,
                       const std::function<const char*(const std::vector<std::string>& words)>& apply) {
  for (size_t at = 0; at <= actions.size();) {
    const size_t end = std::min(actions.find_first_of(";\n", at), actions.size());
    const std::vector<std::string> words = words_of(actions.substr(at, end - at));
    at = end + 1;
    if (words.empty()) continue;
    if (const char* const wrong = apply(words)) return {COLLET_INVALID_ARGUMENT, "'" + text_of(words) + "': " + wrong};
  }
  return {};
}

std::string print_actions(const Kernel& k) {
  std::string out;
  const auto add = [&](const std::string& action) { out += (out.empty() ? "" : "; ") + action; };
  const auto of = [](size_t l) { return " i" + std::to_string(l); };
  if (k.lane_loop < k.loops.size() && k.lanes > 1) add("lanes" + of(k.lane_loop) + " " + std::to_string(k.lanes));
  for (size_t l = 0; l < k.loops.size(); ++l) {
    const Loop& loop = k.loops[l];
    if (loop.kind == LoopKind::kUnroll && l == k.outer) add("unroll");
    if (loop.kind == LoopKind::kInterleave) add("interleave" + of(l) + " " + std::to_string(loop.factor));
    if (loop.kind == LoopKind::kTranspose) add("transpose" + of(l));
    if (loop.strip != 0) add("strip" + of(l) + " " + std::to_string(loop.strip));
  }
  for (size_t i = 0; i < k.passes.size(); ++i)
    add("pass " + std::to_string(i) + " lanes " + std::to_string(k.passes[i].lanes) + " together " +
        std::to_string(k.passes[i].together));
  if (!k.kept.empty()) {
    std::string kept = "keep";
    for (const ExprId e : k.kept) kept += " %" + std::to_string(e);
    add(kept);
  }
  for (const Store& s : k.stores) {
    if (s.bypasses_caches) add("past_caches b" + std::to_string(s.buffer));
  }
  if (k.scalable) add("scalable");
  if (k.unordered) add("unordered");
  return out;
}

Status apply_actions(std::string_view actions, Kernel& kernel) {
  Kernel changed = kernel;
  Actions all(changed);
  COLLET_CODEGEN_TRY(for_each_action(actions, [&](const std::vector<std::string>& words) { return all.apply(words); }));
  all.finish();
  const Status verified = verify_kernel(changed);
  if (!verified.ok()) return {COLLET_INVALID_ARGUMENT, verified.message()};
  kernel = std::move(changed);
  return {};
}

std::string schedule_key(const Kernel& kernel) {
  Kernel plain = kernel;
  remove_schedule(plain);
  const std::string text = print_kernel(plain);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "@";
  const uint64_t hash = collet_hash_bytes(0, text.data(), text.size());
  for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[hash >> shift & 15];
  return out;
}

bool is_schedule_key(std::string_view name) {
  return name.size() == 17 && name[0] == '@' && name.find_first_not_of("0123456789abcdef", 1) == name.npos;
}

std::string schedule_target(const Target& target) {
  std::string out = target.cpu.empty() ? target.triple : target.cpu;
  std::replace(out.begin(), out.end(), ' ', '-');
  return out + "," + std::to_string(target.vector_bits) + "," + std::to_string(target.vector_registers);
}

Status read_schedules(std::string_view text, const std::string& target, Schedules& out) {
  std::string* actions = nullptr;
  bool is_skipped = false;
  int number = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    const std::string place = "line " + std::to_string(number) + ": ";
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const bool goes_on = line[0] == ' ' || line[0] == '\t';
    if (!goes_on && words.size() == 2 && words[0] == "target") {
      is_skipped = words[1] != target;
      actions = nullptr;
      continue;
    }
    const size_t colon = goes_on ? line.npos : line.find(':');
    if (goes_on ? !actions && !is_skipped : colon == line.npos)
      return {COLLET_INVALID_ARGUMENT, place + "expected 'NAME: actions' or 'target NAME'"};
    if (is_skipped) continue;
    if (!goes_on) {
      const auto [it, fresh] = out.try_emplace(std::string(line.substr(0, colon)));
      if (!fresh) return {COLLET_INVALID_ARGUMENT, place + it->first + " stands here twice"};
      actions = &it->second;
      line = line.substr(colon + 1);
    }
    *actions += std::string(line) + "\n";
  }
  return {};
}

Status read_tuning(std::string_view text, const std::string& target, Schedules& out) {
  if (const Status read = read_schedules(text, target, out); !read.ok())
    return {read.code(), "tuning: " + read.message()};
  for (const auto& [name, actions] : out) {
    if (!is_schedule_key(name)) return {COLLET_INVALID_ARGUMENT, "tuning: '" + name + "' is no key of a kernel"};
  }
  return {};
}

}  // namespace collet::codegen
