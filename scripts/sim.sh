run_sim() {
  need build test
  case " $* " in
    *" --svg"*) need plot ;;
  esac
  configure release -D FAIRLEAD_TESTS=ON
  compile build fairlead-sim
  exec build/bin/fairlead-sim "$@"
}
