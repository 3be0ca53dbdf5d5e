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

/** Commands [first, first + length) of a LoopedList run `count` times, one pass after another. Loops are nested or apart. */
struct Loop {
  uint32_t first = 0, length = 1, count = 1;
  /** By how many bytes the offset of an operand grows from one pass to the next: for each command of the loop, those of its
   * `reads`, and then those of its `writes`. Those of an outer loop come on top of those of the inner ones. */
  std::vector<int64_t> steps;
};

/** A list whose repetitions are written once. */
class LoopedList {
 public:
  /** Finds the loops of a list: at each command, of all passes of at most `longest` commands that are repeated twice or more,
   * those that leave out the most commands. Loops of what is left then, in which a loop counts as one command, are those around
   * them. */
  explicit LoopedList(const List& list, uint32_t longest = 64) : engines_(list.engines()) {
    std::vector<Item> items;
    for (uint32_t i = 0; i < list.commands().size(); ++i) {
      Command one = list.commands()[i];
      for (uint32_t& other : one.after) other = i - other;
      items.push_back({{std::move(one)}, {}});
    }
    for (size_t before = items.size() + 1; items.size() < before;) {
      before = items.size();
      items = folded(std::move(items), longest);
    }
    for (Item& item : items) append(std::move(item), &commands_, &loops_);
  }

  /** Returns the commands, of each loop those of the first pass. `after` does not have numbers of commands but distances: 1 is
   * the command that starts just before, in the order in which they run. */
  const std::vector<Command>& commands() const { return commands_; }
  /** Returns the loops, in the order of their first commands, outer ones before those in them. */
  const std::vector<Loop>& loops() const { return loops_; }
  /** Returns the names of the engines. */
  const std::vector<std::string>& engines() const { return engines_; }

  /** Returns the list without loops: the one of which this was made. */
  List unrolled() const {
    std::vector<Command> out;
    std::vector<Command> now = commands_;  // with the offsets of the passes that run
    const auto advance = [&](const Loop& loop, int64_t passes) {
      size_t step = 0;
      for (uint32_t i = loop.first; i < loop.first + loop.length; ++i) {
        for (auto* operands : {&now[i].reads, &now[i].writes}) {
          for (Operand& operand : *operands) operand.offset += static_cast<uint64_t>(loop.steps[step++] * passes);
        }
      }
    };
    const std::function<void(uint32_t, uint32_t, size_t)> run = [&](uint32_t begin, uint32_t end, size_t loop) {
      for_each_part(begin, end, loop, [&](uint32_t at, const Loop* inner, size_t number) {
        if (!inner) {
          out.push_back(now[at]);
          for (uint32_t& other : out.back().after) other = static_cast<uint32_t>(out.size() - 1) - other;
          return;
        }
        for (uint32_t pass = 0; pass < inner->count; ++pass) {
          run(at, at + inner->length, number + 1);
          advance(*inner, 1);
        }
        advance(*inner, -int64_t{inner->count});
      });
    };
    run(0, static_cast<uint32_t>(commands_.size()), 0);
    return List(engines_, std::move(out));
  }

  /** Returns the list as text, one line for each command. Those of a loop are indented, and end with its steps, which of
   * nested loops are those of the innermost one first. */
  std::string text() const {
    std::string out;
    std::vector<std::string> steps(commands_.size());
    for (size_t number = loops_.size(); number-- > 0;) {
      const Loop& loop = loops_[number];
      size_t step = 0;
      for (uint32_t i = loop.first; i < loop.first + loop.length; ++i) {
        for (size_t k = 0; k < commands_[i].reads.size() + commands_[i].writes.size(); ++k) {
          steps[i] += (k != 0 ? ", " : steps[i].empty() ? " steps " : "; ") + std::to_string(loop.steps[step++]);
        }
      }
    }
    const std::function<void(uint32_t, uint32_t, size_t, const std::string&)> print =
        [&](uint32_t begin, uint32_t end, size_t loop, const std::string& indent) {
          for_each_part(begin, end, loop, [&](uint32_t at, const Loop* inner, size_t number) {
            if (!inner) {
              out += indent + detail::text_of(commands_[at], engines_, "waits for -") + steps[at] + "\n";
              return;
            }
            out += indent + std::to_string(inner->count) + " times:\n";
            print(at, at + inner->length, number + 1, indent + "  ");
          });
        };
    print(0, static_cast<uint32_t>(commands_.size()), 0, "");
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
  /** A command, or a loop with what is in it. The first commands of its loops are counted from its own first one. */
  struct Item {
    std::vector<Command> commands;  // `after` has distances
    std::vector<Loop> loops;
  };

  /** Calls visit(first command, loop, number of the loop) for each outermost loop in [begin, end), and visit(command, null, 0) for
   * each command outside of them. `loop` is the first loop that begins there or later, but for those that hold [begin, end). */
  template <class Visit>
  void for_each_part(uint32_t begin, uint32_t end, size_t loop, const Visit& visit) const {
    for (uint32_t at = begin; at < end;) {
      if (loop >= loops_.size() || loops_[loop].first != at) {
        visit(at++, nullptr, 0);
        continue;
      }
      visit(at, &loops_[loop], loop);
      at += loops_[loop].length;
      while (loop < loops_.size() && loops_[loop].first < at) ++loop;
    }
  }

  static void append(Item item, std::vector<Command>* commands, std::vector<Loop>* loops) {
    const auto first = static_cast<uint32_t>(commands->size());
    for (Loop& loop : item.loops) {
      loop.first += first;
      loops->push_back(std::move(loop));
    }
    for (Command& command : item.commands) commands->push_back(std::move(command));
  }

  /** Makes one item of each repetition of items. */
  static std::vector<Item> folded(std::vector<Item> all, uint32_t longest) {
    std::vector<Item> out;
    for (size_t at = 0; at < all.size();) {
      Loop best;
      uint64_t most = 0;
      size_t items = 1;
      for (uint32_t length = 1; length <= longest && at + 3 * size_t{length} <= all.size(); ++length) {
        Loop found = loop_at(all, at, length);
        const uint64_t saved = uint64_t{found.length} * (found.count - 1);
        if (found.count < 3 || saved <= most) continue;
        most = saved;
        items = length;
        best = std::move(found);
      }
      if (most == 0) {
        out.push_back(std::move(all[at++]));
        continue;
      }
      Item one;
      const size_t next = at + items * best.count;
      one.loops.push_back(std::move(best));
      for (size_t i = 0; i < items; ++i) append(std::move(all[at + i]), &one.commands, &one.loops);
      out.push_back(std::move(one));
      at = next;
    }
    return out;
  }

  /** Returns the loop of passes of `length` items that begins at item `at`. */
  static Loop loop_at(const std::vector<Item>& all, size_t at, uint32_t length) {
    Loop out{0, 0, 1, {}};
    for (size_t i = at; i < at + length; ++i) out.length += static_cast<uint32_t>(all[i].commands.size());
    std::vector<int64_t> steps;
    for (size_t pass = at + length; pass + length <= all.size(); pass += length) {
      steps.clear();
      for (size_t i = pass; i < pass + length; ++i) {
        if (!are_alike(all[i - length], all[i], &steps)) return out;
      }
      if (out.count == 1) out.steps = steps;
      if (steps != out.steps) return out;
      ++out.count;
    }
    return out;
  }

  /** True if two items differ only in the offsets of their commands; adds by how much. */
  static bool are_alike(const Item& before, const Item& now, std::vector<int64_t>* steps) {
    if (before.commands.size() != now.commands.size() || before.loops.size() != now.loops.size()) return false;
    for (size_t i = 0; i < now.loops.size(); ++i) {
      const Loop &a = before.loops[i], &b = now.loops[i];
      if (a.first != b.first || a.length != b.length || a.count != b.count || a.steps != b.steps) return false;
    }
    for (size_t i = 0; i < now.commands.size(); ++i) {
      if (!are_alike(before.commands[i], now.commands[i], steps)) return false;
    }
    return true;
  }
  static bool are_alike(const Command& before, const Command& now, std::vector<int64_t>* steps) {
    if (before.engine != now.engine || before.values != now.values || before.reads.size() != now.reads.size() ||
        before.writes.size() != now.writes.size() || before.after != now.after || before.name != now.name) {
      return false;
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
