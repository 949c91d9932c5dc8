#pragma once
// Puts and gets: those that we request from a peer, until it has answered, and those that peers request from us. The
// client places the bytes. The functions here return what to place where, and what ends.

#include <cstdint>

#include "engine/answers.hpp"
#include "engine/awaited.hpp"
#include "engine/core.hpp"
#include "engine/exposures.hpp"
#include "engine/local_copies.hpp"
#include "engine/message_context.hpp"
#include "engine/remote_exposures.hpp"
#include "engine/repeated_transfers.hpp"

namespace fairlead::engine {

class Transfers {
 public:
  static constexpr std::uint32_t kNone = Operations::kNone;

  Transfers(MessageContext& context, Exposures& exposures, Answers& answers, Awaited& awaited, LocalCopies& local)
      : context_(context),
        exposures_(exposures),
        answers_(answers),
        awaited_(awaited),
        local_(local),
        remote_(context) {}

  Status submit(PortHandle port, OperationKind kind, const Transfer& transfer, OperationHandle& operation,
                base::Instant now);

  // Handlers of peers' requests and answers. They return the operation whose memory receives the bytes, or
  // (deliver_done) the one to end; kNone if there is none.
  std::uint32_t deliver_put(const link::Delivery& delivery, base::Instant now);
  void deliver_get(const link::Delivery& delivery, base::Instant now);
  std::uint32_t deliver_answer(const link::Delivery& delivery, bool has_place);
  std::uint32_t deliver_done(const link::Delivery& delivery, base::Instant now);
  /// All bytes of a put, or of a get's answer, are in place. Returns whether the operation must be ended.
  bool end_placed(std::uint32_t slot, const link::Delivery& delivery, base::Instant now);

  bool is_repeating() const { return !repeated_.is_empty(); }
  /// Requests again those that are due. `end(slot)` ends one that has failed.
  template <typename End>
  void repeat(base::Instant now, End&& end) {
    if (answers_.is_held()) return;  // else a handover would wait for it
    std::uint32_t left = RepeatedTransfers::kInPass;
    std::uint64_t bytes = 0;  // that this engine copies at once
    for (std::uint32_t looks = RepeatedTransfers::kLooksInPass;
         left > 0 && looks > 0 && bytes < LocalCopies::kBytesInTurn; --looks) {
      const std::uint64_t name = repeated_.take_due(now);
      if (name == 0) return;
      const Operation* const operation = context_.operations.find(name);
      if (operation == nullptr) continue;
      --left;
      if (is_here(*operation) && !local_.takes_turns(operation->length)) bytes += operation->length;
      if (!repeat_one(slot_of(name), now)) end(slot_of(name));
    }
  }

 private:
  friend class MessagesHandover;

  std::uint32_t make(PortHandle port, OperationKind kind, const Transfer& transfer);
  bool is_here(const Operation& operation) const { return operation.other.engine == context_.address; }
  Status start_here(std::uint32_t slot, base::Instant now);
  Status carry_out_here(std::uint32_t slot, base::Instant now);
  Status ask(std::uint32_t slot, const Transfer& transfer, base::Instant now);
  Status request(std::uint32_t slot, base::Instant now);
  bool await_exposure(std::uint32_t slot, base::Instant now);
  Status ask_again(std::uint32_t slot, base::Instant now);
  bool repeat_one(std::uint32_t slot, base::Instant now);
  std::uint32_t take_exposure(const link::Delivery& delivery, OperationKind kind, std::uint64_t length,
                              base::Instant now);

  MessageContext& context_;
  Exposures& exposures_;
  Answers& answers_;
  Awaited& awaited_;
  LocalCopies& local_;
  RemoteExposures remote_;
  RepeatedTransfers repeated_;
};

}  // namespace fairlead::engine
