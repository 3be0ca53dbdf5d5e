/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_COMMAND_LIST_HPP
#define COLLET_COMMAND_LIST_HPP

/** \file
 * Command lists for devices without control flow: commands on engines that run side by side, operands in a scratchpad or in
 * arrays whose addresses come at launch, and dependencies. Lists are built, printed, checked, and run by a simulator:
 *
 *     collet::commands::List list({"dma", "matrix"});
 *     const collet::commands::Operand there = collet::commands::in_array(0, 0, 256), here = collet::commands::in_scratchpad(0, 256);
 *     list.add({"load", 0, {there}, {here}});
 *     list.add({"square", 1, {here}, {collet::commands::in_scratchpad(256, 1024)}});  // waits for the load
 *     report(list.text());
 *     report(collet::commands::complaint_of(list, 1 << 20));
 *
 * Header only. An object is used by one thread at a time.
 */

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernel_records.hpp"

namespace collet {
/** Command lists of devices, and their simulation. */
namespace commands {

/** The base of an operand in the scratchpad. */
constexpr uint32_t scratchpad = UINT32_MAX;

/** Bytes that a command reads or writes: `rows` pieces of `bytes` bytes, each `pitch` bytes after the one before. */
struct Operand {
  uint32_t base = scratchpad; /**< number of an array, whose address comes at launch; or `scratchpad` */
  uint64_t offset = 0;        /**< from the start of the array or scratchpad, in bytes */
  uint64_t bytes = 0;
  uint64_t rows = 1;
  uint64_t pitch = 0;
};

/** Returns an operand in the scratchpad. */
inline Operand in_scratchpad(uint64_t offset, uint64_t bytes, uint64_t rows = 1, uint64_t pitch = 0) {
  return {scratchpad, offset, bytes, rows, pitch};
}
/** Returns an operand in array number `base`. */
inline Operand in_array(uint32_t base, uint64_t offset, uint64_t bytes, uint64_t rows = 1, uint64_t pitch = 0) {
  return {base, offset, bytes, rows, pitch};
}

/** A command. Those of one engine run in the order of the list. */
struct Command {
  std::string name;    /**< what it does, for the device and for readers */
  uint32_t engine = 0; /**< number of an engine of the list */
  std::vector<Operand> reads = {}, writes = {};
  std::vector<int64_t> values = {}; /**< immediates: their meaning is the command's */
  std::vector<uint32_t> after =
      {}; /**< commands of other engines that must have ended; List::add adds what operands need */
};

namespace detail {

/** Returns how many rows of an operand have bytes that those before do not have: rows at no distance are one. */
inline uint64_t distinct_rows(const Operand& operand) {
  if (operand.bytes == 0) return 0;
  return operand.pitch == 0 ? std::min<uint64_t>(operand.rows, 1) : operand.rows;
}

/** True if each row of an operand ends within `all` bytes. */
inline bool is_within(const Operand& operand, uint64_t all) {
  const uint64_t rows = distinct_rows(operand);
  if (operand.offset > all || (rows != 0 && operand.bytes > all - operand.offset)) return false;
  return rows < 2 || rows - 1 <= (all - operand.offset - operand.bytes) / operand.pitch;
}

/** Who used which bytes last. */
class Uses {
 public:
  /** Calls visit(command, begin, end) for each earlier use that a use by a command conflicts with, then stores this one. */
  template <class Visit>
  void add(uint32_t command, const Operand& operand, bool writes, const Visit& visit) {
    const uint64_t rows = distinct_rows(operand);
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t begin = operand.offset + row * operand.pitch;
      add(&bases_[operand.base], command, begin, begin + operand.bytes, writes, visit);
    }
  }
  /** Returns the first byte in [begin, end) of the scratchpad that nothing has written; `end` if there is none. */
  uint64_t first_unwritten(uint64_t begin, uint64_t end) const {
    const auto base = bases_.find(scratchpad);
    if (base == bases_.end()) return begin;
    while (begin < end) {
      auto next = base->second.upper_bound(begin);
      if (next == base->second.begin()) return begin;
      --next;
      if (next->second.end <= begin || next->second.writer == none) return begin;
      begin = next->second.end;
    }
    return end;
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Segment {
    uint64_t end;
    uint32_t writer;
    std::vector<uint32_t> readers;  // since it was written
  };
  using Segments = std::map<uint64_t, Segment>;

  static void split(Segments* segments, uint64_t at) {
    auto next = segments->upper_bound(at);
    if (next == segments->begin()) return;
    --next;
    if (next->first >= at || next->second.end <= at) return;
    Segment rest = next->second;
    next->second.end = at;
    segments->emplace(at, std::move(rest));
  }

  template <class Visit>
  static void add(Segments* segments, uint32_t command, uint64_t begin, uint64_t end, bool writes, const Visit& visit) {
    split(segments, begin);
    split(segments, end);
    uint64_t at = begin;
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
    for (auto it = segments->lower_bound(begin); it != segments->end() && it->first < end; ++it) {
      if (it->first > at) gaps.emplace_back(at, it->first);
      at = it->second.end;
      if (it->second.writer != none && it->second.writer != command) visit(it->second.writer, it->first, at);
      if (!writes) {
        if (it->second.readers.empty() || it->second.readers.back() != command) it->second.readers.push_back(command);
        continue;
      }
      for (const uint32_t reader : it->second.readers) {
        if (reader != command) visit(reader, it->first, at);
      }
    }
    if (at < end) gaps.emplace_back(at, end);
    if (writes) {
      segments->erase(segments->lower_bound(begin), segments->lower_bound(end));
      segments->emplace(begin, Segment{end, command, {}});
    } else {
      for (const auto& gap : gaps) segments->emplace(gap.first, Segment{gap.second, none, {command}});
    }
  }

  std::map<uint32_t, Segments> bases_;
};

/** For each command and engine, how many commands of the engine have ended when the command starts. */
class Clocks {
 public:
  explicit Clocks(size_t engines) : done_(engines), last_(engines, UINT32_MAX) {}
  /** Returns the clock of the next command, without its dependencies. */
  void begin(uint32_t engine) {
    now_.assign(done_.size(), 0);
    if (last_[engine] != UINT32_MAX) now_ = all_[last_[engine]];
    now_[engine] = done_[engine];
  }
  /** Adds a dependency. */
  void wait(uint32_t command) {
    for (size_t e = 0; e < now_.size(); ++e) now_[e] = std::max(now_[e], all_[command][e]);
    now_[engines_[command]] = std::max(now_[engines_[command]], order_[command] + 1);
  }
  /** True if `command` has ended when the next command starts. */
  bool has_ended(uint32_t command) const { return order_[command] < now_[engines_[command]]; }
  void end(uint32_t engine) {
    last_[engine] = static_cast<uint32_t>(all_.size());
    all_.push_back(now_);
    engines_.push_back(engine);
    order_.push_back(done_[engine]++);
  }

 private:
  std::vector<uint32_t> done_, last_, now_, engines_, order_;
  std::vector<std::vector<uint32_t>> all_;
};

inline std::string text_of(const Operand& operand) {
  std::string out = operand.base == scratchpad ? "scratchpad" : "array" + std::to_string(operand.base);
  out += "[" + std::to_string(operand.offset) + " + " + std::to_string(operand.bytes);
  if (operand.rows != 1) out += ", " + std::to_string(operand.rows) + " times at " + std::to_string(operand.pitch);
  return out + "]";
}

/** Returns a string of JSON. */
inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte >= 0x20) {
      out += c;
    } else {
      const char* const digits = "0123456789abcdef";
      out += std::string("\\u00") + digits[byte >> 4] + digits[byte & 15];
    }
  }
  return out + "\"";
}

/** Returns a command as a line of text; `waits` stands before each number that it waits for. */
inline std::string text_of(const Command& one, const std::vector<std::string>& engines, const std::string& waits) {
  std::string out = (one.engine < engines.size() ? engines[one.engine] : "?") + " " + one.name;
  const auto operands = [&](const char* what, const std::vector<Operand>& list) {
    for (size_t k = 0; k < list.size(); ++k) out += (k == 0 ? what : ", ") + text_of(list[k]);
  };
  operands(" reads ", one.reads);
  operands(" writes ", one.writes);
  for (size_t k = 0; k < one.values.size(); ++k) out += (k == 0 ? " with " : ", ") + std::to_string(one.values[k]);
  for (size_t k = 0; k < one.after.size(); ++k) out += (k == 0 ? " " + waits : ", ") + std::to_string(one.after[k]);
  return out;
}

/** Returns engines and commands as an object of JSON, without its last bracket. */
inline std::string json_of(const std::vector<std::string>& engines, const std::vector<Command>& commands) {
  const auto list = [](const auto& items, const auto& text) {
    std::string all;
    for (const auto& item : items) all += (all.empty() ? "" : ", ") + text(item);
    return "[" + all + "]";
  };
  const auto number = [](auto value) { return std::to_string(value); };
  const auto operand = [](const Operand& one) {
    return "{\"array\": " + (one.base == scratchpad ? "null" : std::to_string(one.base)) +
           ", \"offset\": " + std::to_string(one.offset) + ", \"bytes\": " + std::to_string(one.bytes) +
           ", \"rows\": " + std::to_string(one.rows) + ", \"pitch\": " + std::to_string(one.pitch) + "}";
  };
  std::string out = "{\"engines\": " + list(engines, quoted) + ",\n \"commands\": [";
  for (size_t i = 0; i < commands.size(); ++i) {
    const Command& one = commands[i];
    out += (i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ") + quoted(one.name) +
           ", \"engine\": " + std::to_string(one.engine) + ", \"reads\": " + list(one.reads, operand) +
           ", \"writes\": " + list(one.writes, operand) + ", \"values\": " + list(one.values, number) +
           ", \"after\": " + list(one.after, number) + "}";
  }
  return out + "]";
}

}  // namespace detail

/** A list of commands in the order in which engines take them. */
class List {
 public:
  /** Makes an empty list for a device with these engines, which run side by side. */
  explicit List(std::vector<std::string> engines) : engines_(std::move(engines)), clocks_(engines_.size()) {}
  /** Makes a list of commands as they are: `add` finds no dependencies for them, nor for those that it appends. For lists that
   * come from elsewhere. */
  List(std::vector<std::string> engines, std::vector<Command> commands)
      : engines_(std::move(engines)), commands_(std::move(commands)), clocks_(engines_.size()), as_is_(true) {}

  /** Appends a command and returns its number. It waits for every earlier command whose operands conflict with its own,
   * unless it does so already through others. A command whose engine, or one of whose `after`, does not exist is appended as it
   * is, for complaint_of to report, and so are those behind it. */
  uint32_t add(Command command) {
    const auto number = static_cast<uint32_t>(commands_.size());
    as_is_ = as_is_ || command.engine >= engines_.size();
    for (const uint32_t one : command.after) as_is_ = as_is_ || one >= number;
    if (as_is_) {
      commands_.push_back(std::move(command));
      return number;
    }
    clocks_.begin(command.engine);
    for (const uint32_t one : command.after) clocks_.wait(one);
    std::vector<uint32_t> before;
    const auto visit = [&](uint32_t other, uint64_t, uint64_t) { before.push_back(other); };
    for (const Operand& operand : command.reads) uses_.add(number, operand, false, visit);
    for (const Operand& operand : command.writes) uses_.add(number, operand, true, visit);
    std::sort(before.rbegin(), before.rend());  // the latest first: it may imply the others
    for (const uint32_t other : before) {
      if (clocks_.has_ended(other)) continue;
      clocks_.wait(other);
      command.after.push_back(other);
    }
    clocks_.end(command.engine);
    commands_.push_back(std::move(command));
    return number;
  }
  /** Returns the commands. */
  const std::vector<Command>& commands() const { return commands_; }
  /** Returns the names of the engines. */
  const std::vector<std::string>& engines() const { return engines_; }

  /** Returns the list as text, one line for each command. */
  std::string text() const {
    std::string out;
    for (size_t i = 0; i < commands_.size(); ++i) {
      out += std::to_string(i) + ": " + detail::text_of(commands_[i], engines_, "after ") + "\n";
    }
    return out;
  }

  /** Returns the list as JSON: {"engines": [names], "commands": [{"name", "engine", "reads", "writes", "values", "after"}]}. An
   * operand is {"array", "offset", "bytes", "rows", "pitch"}; "array" is null for the scratchpad. */
  std::string json() const { return detail::json_of(engines_, commands_) + "}\n"; }

 private:
  std::vector<std::string> engines_;
  std::vector<Command> commands_;
  detail::Uses uses_;
  detail::Clocks clocks_;
  bool as_is_ = false;
};

/** Returns the first thing that is wrong with a list on a device with `scratchpad_bytes` of scratchpad; empty if nothing is:
 * engines and dependencies that do not exist, operands beyond the scratchpad or their arrays (`array_bytes`, by number; those
 * that are not listed are not checked), bytes of the scratchpad that are read before they were written, and commands that
 * use the same bytes at the same time, one of them to write. */
inline std::string complaint_of(const List& list, uint64_t scratchpad_bytes,
                                const std::vector<uint64_t>& array_bytes = {}) {
  detail::Uses uses;
  detail::Clocks clocks(list.engines().size());
  const std::vector<Command>& commands = list.commands();
  const auto name = [&](uint32_t i) { return "command " + std::to_string(i) + " (" + commands[i].name + ")"; };
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const Command& one = commands[i];
    if (one.engine >= list.engines().size())
      return name(i) + " is for engine " + std::to_string(one.engine) + ", which does not exist";
    for (const uint32_t other : one.after) {
      if (other >= i) return name(i) + " waits for command " + std::to_string(other) + ", which is not before it";
    }
    clocks.begin(one.engine);
    for (const uint32_t other : one.after) clocks.wait(other);
    std::string complaint;
    const auto check = [&](const Operand& operand, bool writes) {
      const bool here = operand.base == scratchpad;
      const std::string what = name(i) + (writes ? " writes " : " reads ") + detail::text_of(operand);
      const uint64_t all = here                                ? scratchpad_bytes
                           : operand.base < array_bytes.size() ? array_bytes[operand.base]
                                                               : UINT64_MAX;
      if (!detail::is_within(operand, all)) {
        complaint =
            what + ", beyond the " + std::to_string(all) + " bytes " + (here ? "of the scratchpad" : "of the array");
      }
      const uint64_t rows_read = here && !writes ? detail::distinct_rows(operand) : 0;
      for (uint64_t row = 0; row < rows_read && complaint.empty(); ++row) {
        const uint64_t begin = operand.offset + row * operand.pitch;
        const uint64_t at = uses.first_unwritten(begin, begin + operand.bytes);
        if (at != begin + operand.bytes)
          complaint = what + ", of which byte " + std::to_string(at) + " was not written";
      }
      if (!complaint.empty()) return;
      uses.add(i, operand, writes, [&](uint32_t other, uint64_t begin, uint64_t end) {
        if (!complaint.empty() || clocks.has_ended(other)) return;
        complaint = what + " and does not wait for " + name(other) + ", which uses bytes " + std::to_string(begin) +
                    " to " + std::to_string(end);
      });
    };
    for (const Operand& operand : one.reads) check(operand, false);
    for (const Operand& operand : one.writes) check(operand, true);
    if (!complaint.empty()) return complaint;
    clocks.end(one.engine);
  }
  return {};
}

/** What a device of these commands does and how long it takes. A simulated device derives from it. */
class Machine {
 public:
  virtual ~Machine() = default;
  /** Returns the cycles that a command takes, at least 1. */
  virtual uint64_t cycles(const Command& command) const = 0;
  /** Does the work of a command. `at(operand)` is the address of an operand's first byte. */
  virtual void run(const Command& command, const std::function<char*(const Operand&)>& at) = 0;
};

/** The work of one command in a simulation. */
struct Activity {
  uint32_t command = 0;
  uint64_t start = 0, end = 0; /**< cycles since the start of the list */
};

/** What a simulation saw. */
struct Simulated {
  std::string complaint;            /**< why the list was not run; empty if it was */
  uint64_t cycles = 0;              /**< until the last command has ended */
  std::vector<uint64_t> busy;       /**< cycles in which each engine worked */
  std::vector<Activity> activities; /**< one for each command, in the order of the list */
};

/** Returns when each command of a list runs on a machine, as `simulate` does, without its work and without a check: each engine
 * starts its next command as soon as that may start. */
inline Simulated timing_of(const Machine& machine, const List& list) {
  Simulated out;
  std::vector<uint64_t> free(list.engines().size(), 0);
  out.busy.assign(list.engines().size(), 0);
  for (uint32_t i = 0; i < list.commands().size(); ++i) {
    const Command& one = list.commands()[i];
    Activity activity{i, free[one.engine], 0};
    for (const uint32_t other : one.after) activity.start = std::max(activity.start, out.activities[other].end);
    const uint64_t cycles = std::max<uint64_t>(machine.cycles(one), 1);
    activity.end = free[one.engine] = activity.start + cycles;
    out.busy[one.engine] += cycles;
    out.cycles = std::max(out.cycles, activity.end);
    out.activities.push_back(activity);
  }
  return out;
}

/** Runs a list on a machine: checks it (complaint_of), lets each engine start its next command as soon as that may start, and does
 * the work in the order of the list, which has the same result. `scratch` is the scratchpad; `arrays` has the address of each
 * array, by number. What Machine::run throws is passed on. */
inline Simulated simulate(Machine& machine, const List& list, std::vector<char>& scratch,
                          const std::vector<char*>& arrays, const std::vector<uint64_t>& array_bytes = {}) {
  Simulated out;
  out.complaint = complaint_of(list, scratch.size(), array_bytes);
  for (size_t i = 0; i < list.commands().size() && out.complaint.empty(); ++i) {
    for (const auto* operands : {&list.commands()[i].reads, &list.commands()[i].writes}) {
      for (const Operand& operand : *operands) {
        if (operand.base == scratchpad || operand.base < arrays.size()) continue;
        out.complaint = "command " + std::to_string(i) + " (" + list.commands()[i].name + ") uses array " +
                        std::to_string(operand.base) + ", of which no address was given";
      }
    }
  }
  if (!out.complaint.empty()) return out;
  out = timing_of(machine, list);
  const auto at = [&](const Operand& operand) {
    return (operand.base == scratchpad ? scratch.data() : arrays[operand.base]) + operand.offset;
  };
  for (const Command& one : list.commands()) machine.run(one, at);
  return out;
}

/** Returns the records of a simulation for Device::record and the table "profile": one for each command, on its engine, as if
 * the list had started at `start_ns`, with `cycles_per_ns` cycles in a nanosecond. `run_id` is that of Op::run_id. */
inline std::vector<kernel::Record> records_of(const List& list, const Simulated& simulated, uint64_t start_ns,
                                              double cycles_per_ns, uint64_t run_id) {
  std::vector<kernel::Record> out;
  for (const Activity& one : simulated.activities) {
    const Command& command = list.commands()[one.command];
    kernel::Record record;
    record.name = command.name;
    record.engine = list.engines()[command.engine];
    record.start_ns = start_ns + static_cast<uint64_t>(static_cast<double>(one.start) / cycles_per_ns);
    record.duration_ns = static_cast<uint64_t>(static_cast<double>(one.end - one.start) / cycles_per_ns);
    record.run_id = run_id;
    for (const auto* operands : {&command.reads, &command.writes}) {
      for (const Operand& operand : *operands) {
        if (operand.base != scratchpad) record.bytes += operand.bytes * operand.rows;
      }
    }
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace commands
}  // namespace collet

#endif
