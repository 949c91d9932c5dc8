#pragma once
// Where the receives of a completion stream's queue pairs come from, if not all are posted by calls.

namespace fairlead::qp {

class ReceiveQueue;

class ReceiveSource {
 public:
  /// A message has found no receive in this queue. Posts those that the source has, until the queue has one. Called
  /// under the engine's lock, by any thread that makes passes, in the middle of a delivery. It may post receives, and
  /// call nothing else of the engine.
  virtual void post_for(const ReceiveQueue& queue) = 0;

 protected:
  ~ReceiveSource() = default;
};

}  // namespace fairlead::qp
