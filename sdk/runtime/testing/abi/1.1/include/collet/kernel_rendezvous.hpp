/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_MEETING_HPP
#define COLLET_KERNEL_MEETING_HPP

/** \file
 * Lets the participants of an execution wait for each other. Included by kernel_backend.hpp.
 */

#include "kernel_instance.hpp"

namespace collet {
namespace kernel {
namespace detail {

/** The participants of one execution, each of which runs on its own thread. */
class Rendezvous {
 public:
  explicit Rendezvous(uint32_t participants) : left_(participants, 0), missing_(participants) {}

  /** Waits until all members of `group` have reached `place` (a number in the program), each with its data `mine`. The
   * last member to arrive calls act(members), in the order of the group, before the others continue. `serial_lock` is
   * released while waiting. Throws if a member does not come, because it has ended, has failed, or waits elsewhere; an
   * exception of `act` is thrown in all members. */
  template <class Mine, class Act>
  void meet(uint64_t place, const std::string& name, const std::vector<uint32_t>& group, uint32_t participant,
            const Mine& mine, const std::atomic<bool>* stop, std::unique_lock<std::mutex>* serial_lock,
            const Act& act) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (first_.code != COLLET_OK) throw Error(first_.code, first_.message);
    const auto key = std::make_pair(place, group[0]);
    std::shared_ptr<Exchange>& slot = exchanges_[key];
    if (!slot) slot = std::make_shared<Exchange>();
    const std::shared_ptr<Exchange> exchange = slot;
    exchange->present[participant] = &mine;
    if (exchange->present.size() == group.size()) {
      exchanges_.erase(key);
      std::vector<const Mine*> members;
      for (const uint32_t member : group) members.push_back(static_cast<const Mine*>(exchange->present.at(member)));
      lock.unlock();
      collet_error error{};
      guarded(&error, [&] { act(members); });
      lock.lock();
      exchange->error = error;
      exchange->done = true;
      changed_.notify_all();
    } else {
      waits_[participant] = {exchange, &group, &name};
      look_stuck();
      if (serial_lock && serial_lock->owns_lock()) {
        serial_lock->unlock();
        wait(&lock, *exchange, stop);
        lock.unlock();
        // Taken while the rendezvous is unlocked, because other threads take the locks in the opposite order.
        serial_lock->lock();
        lock.lock();
      } else {
        wait(&lock, *exchange, stop);
      }
      waits_.erase(participant);
    }
    if (exchange->error.code != COLLET_OK) throw Error(exchange->error.code, exchange->error.message);
  }

  /** Reports that a participant has ended, with success or an error, or never began. */
  void leave(uint32_t participant, const collet_error* error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (left_[participant]) return;
    left_[participant] = 1;
    --missing_;
    if (error && error->code != COLLET_OK) {
      if (first_.code == COLLET_OK) first_ = *error;
      for (auto& one : exchanges_) fail(one.second.get(), first_);
      exchanges_.clear();
    }
    look_stuck();
  }

  /** Returns the first error. */
  collet_error first_error() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_;
  }

 private:
  struct Exchange {
    std::map<uint32_t, const void*> present;
    bool done = false;
    collet_error error{};
  };
  struct Wait {
    std::shared_ptr<Exchange> exchange;
    const std::vector<uint32_t>* group;
    const std::string* name;
  };

  void wait(std::unique_lock<std::mutex>* lock, Exchange& exchange, const std::atomic<bool>* stop) {
    while (!exchange.done) {
      changed_.wait_for(*lock, std::chrono::milliseconds(20));
      if (!exchange.done && stop && *stop) {
        collet_error error{};
        collet_set_error(&error, COLLET_CANCELLED, "the queue of a participant has failed");
        fail(&exchange, error);
        for (auto one = exchanges_.begin(); one != exchanges_.end();) {
          one = one->second.get() == &exchange ? exchanges_.erase(one) : std::next(one);
        }
      }
    }
  }

  void fail(Exchange* exchange, const collet_error& error) {
    exchange->done = true;
    exchange->error = error;
    changed_.notify_all();
  }

  /** Detects that all participants that have not ended are waiting, so that none will come. */
  void look_stuck() {
    size_t waiting = 0;
    for (const auto& one : waits_) waiting += one.second.exchange->done ? 0 : 1;
    if (waiting == 0 || waiting < missing_) return;
    const auto& first =
        *std::find_if(waits_.begin(), waits_.end(), [](const auto& one) { return !one.second.exchange->done; });
    uint32_t other = 0;
    for (const uint32_t member : *first.second.group) {
      if (!first.second.exchange->present.count(member)) other = member;
    }
    collet_error error{};
    collet_set_error(&error, COLLET_FAILED_PRECONDITION,
                     (*first.second.name + ": participant " + std::to_string(first.first) + " waits for participant " +
                      std::to_string(other) + ", which takes another way through the program")
                         .c_str());
    if (first_.code == COLLET_OK) first_ = error;
    for (auto& one : exchanges_) fail(one.second.get(), error);
    exchanges_.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<uint64_t, uint32_t>, std::shared_ptr<Exchange>> exchanges_;
  std::map<uint32_t, Wait> waits_;
  std::vector<char> left_;
  size_t missing_;
  collet_error first_{};
};

/** A participant's membership in a rendezvous, which the destructor ends. */
class Ticket {
 public:
  Ticket(std::shared_ptr<Rendezvous> rendezvous, uint32_t participant)
      : rendezvous_(std::move(rendezvous)), participant_(participant) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    collet_error error{};
    collet_set_error(&error, COLLET_CANCELLED, "a participant never began");
    rendezvous_->leave(participant_, &error);
  }
  Rendezvous* rendezvous() const { return rendezvous_.get(); }
  /** Reports that the participant has ended. */
  void leave(const collet_error* error) { rendezvous_->leave(participant_, error); }

 private:
  std::shared_ptr<Rendezvous> rendezvous_;
  uint32_t participant_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
