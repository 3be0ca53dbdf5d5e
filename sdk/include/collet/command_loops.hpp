/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COMMAND_LOOPS_HPP
#define COLLET_COMMAND_LOOPS_HPP

/** \file
 * Command lists with loops, for devices that repeat commands and advance their addresses: a layer of many tiles is a few
 * commands, which run many times.
 *
 *     const collet::commands::List list({"dma", "matrix"});
 *     const collet::commands::LoopedList looped(list);
 *     for (const collet::commands::Loop& loop : looped.loops()) use(looped.commands(), loop);
 *
 * Header only. An object is used by one thread at a time.
 */

#include "command_list.hpp"

namespace collet {
namespace commands {

/** Commands [first, first + length) of a LoopedList run `count` times, one pass after another. */
struct Loop {
  uint32_t first = 0, length = 1, count = 1;
  /** By how many bytes the offset of an operand grows from one pass to the next: for each command of the loop, those of its
   * `reads`, and then those of its `writes`. */
  std::vector<int64_t> steps;
};

/** A list whose repetitions are written once. */
class LoopedList {
 public:
  /** Finds the loops of a list: at each command, of all passes of at most `longest` commands that are repeated twice or more,
   * those that leave out the most commands. Loops are not nested. */
  explicit LoopedList(const List& list, uint32_t longest = 64) : engines_(list.engines()) {
    const std::vector<Command>& all = list.commands();
    for (uint32_t at = 0; at < all.size();) {
      Loop best;
      for (uint32_t length = 1; length <= longest && at + 3 * uint64_t{length} <= all.size(); ++length) {
        const Loop found = loop_at(all, at, length);
        if (found.count >= 3 && saved(found) > saved(best)) best = found;
      }
      best.first = static_cast<uint32_t>(commands_.size());
      for (uint32_t i = 0; i < best.length; ++i) {
        Command one = all[at + i];
        for (uint32_t& other : one.after) other = at + i - other;
        commands_.push_back(std::move(one));
      }
      at += best.length * best.count;
      if (best.count > 1) loops_.push_back(std::move(best));
    }
  }

  /** Returns the commands, of each loop those of the first pass. `after` does not have numbers of commands but distances: 1 is
   * the command that starts just before, in the order in which they run. */
  const std::vector<Command>& commands() const { return commands_; }
  /** Returns the loops, in the order of the commands. */
  const std::vector<Loop>& loops() const { return loops_; }
  /** Returns the names of the engines. */
  const std::vector<std::string>& engines() const { return engines_; }

  /** Returns the list without loops: the one of which this was made. */
  List unrolled() const {
    std::vector<Command> out;
    for_each_part([&](uint32_t first, const Loop& loop) {
      for (uint32_t pass = 0; pass < loop.count; ++pass) {
        size_t step = 0;
        for (uint32_t i = 0; i < loop.length; ++i) {
          Command one = commands_[first + i];
          for (auto* operands : {&one.reads, &one.writes}) {
            for (Operand& operand : *operands) {
              if (loop.count > 1) operand.offset += static_cast<uint64_t>(loop.steps[step++] * int64_t{pass});
            }
          }
          for (uint32_t& other : one.after) other = static_cast<uint32_t>(out.size()) - other;
          out.push_back(std::move(one));
        }
      }
    });
    return List(engines_, std::move(out));
  }

  /** Returns the list as text, one line for each command. Those of a loop are indented, and end with its steps. */
  std::string text() const {
    std::string out;
    for_each_part([&](uint32_t first, const Loop& loop) {
      if (loop.count > 1) out += std::to_string(loop.count) + " times:\n";
      size_t step = 0;
      for (uint32_t i = first; i < first + loop.length; ++i) {
        out += (loop.count > 1 ? "  " : "") + detail::text_of(commands_[i], engines_, "waits for -");
        for (size_t k = 0; loop.count > 1 && k < commands_[i].reads.size() + commands_[i].writes.size(); ++k) {
          out += (k == 0 ? " steps " : ", ") + std::to_string(loop.steps[step++]);
        }
        out += "\n";
      }
    });
    return out;
  }

  /** Returns the list as JSON: that of List::json, with "loops": [{"first", "length", "count", "steps"}], and with distances as
   * "after". */
  std::string json() const {
    std::string out = detail::json_of(engines_, commands_) + ",\n \"loops\": [";
    for (size_t i = 0; i < loops_.size(); ++i) {
      const Loop& loop = loops_[i];
      std::string steps;
      for (const int64_t step : loop.steps) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
      out += (i == 0 ? "\n  {\"first\": " : ",\n  {\"first\": ") + std::to_string(loop.first) +
             ", \"length\": " + std::to_string(loop.length) + ", \"count\": " + std::to_string(loop.count) +
             ", \"steps\": [" + steps + "]}";
    }
    return out + "]}\n";
  }

 private:
  static uint64_t saved(const Loop& loop) { return uint64_t{loop.length} * (loop.count - 1); }

  /** Calls visit(first, loop) for each loop, and for each command outside of them, which is a loop of one pass. */
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    size_t next = 0;
    for (uint32_t at = 0; at < commands_.size();) {
      const bool loops = next < loops_.size() && loops_[next].first == at;
      const Loop part = loops ? loops_[next++] : Loop{at, 1, 1, {}};
      visit(at, part);
      at += part.length;
    }
  }

  /** Returns the loop of passes of `length` commands that begins at command `at`. */
  static Loop loop_at(const std::vector<Command>& all, uint32_t at, uint32_t length) {
    Loop out{at, length, 1, {}};
    std::vector<int64_t> steps;
    for (uint32_t pass = at + length; pass + uint64_t{length} <= all.size(); pass += length) {
      steps.clear();
      for (uint32_t i = pass; i < pass + length; ++i) {
        if (!is_alike(all[i - length], i - length, all[i], i, &steps)) return out;
      }
      if (out.count == 1) out.steps = steps;
      if (steps != out.steps) return out;
      ++out.count;
    }
    return out;
  }

  /** True if two commands differ only in their offsets; adds by how much. */
  static bool is_alike(const Command& before, uint32_t before_number, const Command& now, uint32_t number,
                       std::vector<int64_t>* steps) {
    if (before.engine != now.engine || before.values != now.values || before.reads.size() != now.reads.size() ||
        before.writes.size() != now.writes.size() || before.after.size() != now.after.size() ||
        before.name != now.name) {
      return false;
    }
    for (size_t k = 0; k < now.after.size(); ++k) {
      if (before_number - before.after[k] != number - now.after[k]) return false;
    }
    const auto operands_are_alike = [&](const std::vector<Operand>& old, const std::vector<Operand>& fresh) {
      for (size_t k = 0; k < old.size(); ++k) {
        const Operand &a = old[k], &b = fresh[k];
        if (a.base != b.base || a.bytes != b.bytes || a.rows != b.rows || a.pitch != b.pitch) return false;
        steps->push_back(static_cast<int64_t>(b.offset - a.offset));
      }
      return true;
    };
    return operands_are_alike(before.reads, now.reads) && operands_are_alike(before.writes, now.writes);
  }

  std::vector<std::string> engines_;
  std::vector<Command> commands_;
  std::vector<Loop> loops_;
};

}  // namespace commands
}  // namespace collet

#endif
