! What the tests of the Fortran module share: a check that fails is printed and remembered, the program fails at the end.
module checks
  use tasuki
  implicit none
  logical :: all_well = .true.

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    all_well = .false.
    print '(2a)', 'not so: ', what
  end subroutine

  ! A call must have failed with `expected`, with a text that contains `part`.
  subroutine check_failure(stat, errmsg, expected, part)
    integer, intent(in) :: stat, expected
    character(*), intent(inout) :: errmsg
    character(*), intent(in) :: part
    call check(stat == expected .and. index(errmsg, part) > 0, 'a failure that says "'//part//'": '//trim(errmsg))
    errmsg = ''
  end subroutine

  ! The plan's texts and the verifier's report, for every operation that a test makes; of one or a list. Collective.
  impure elemental subroutine check_operation(operation)
    type(tasuki_operation), intent(in) :: operation
    character(:), allocatable :: text
    logical :: ok
    call tasuki_verify(operation, ok, text)
    call check(ok, 'the verifier: '//text)
    call tasuki_plan_text(operation, text)
    call check(index(text, 'plan format') == 1, 'a plan as text')
    call tasuki_plan_json(operation, text)
    call check(index(text, '{') == 1, 'a plan as JSON')
    call tasuki_explain(operation, text)
    call check(len(text) > 0, 'an explanation')
  end subroutine

  ! One epoch of an operation, or of each in a list.
  impure elemental subroutine run(operation)
    type(tasuki_operation), intent(in) :: operation
    call tasuki_start(operation)
    call tasuki_wait(operation)
  end subroutine

  ! Frees an operation, or each in a list, which may be a constructor's.
  impure elemental subroutine free(operation)
    type(tasuki_operation), intent(in) :: operation
    type(tasuki_operation) :: handle
    handle = operation
    call tasuki_free(handle)
  end subroutine

end module
