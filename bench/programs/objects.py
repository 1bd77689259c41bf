# SPDX-License-Identifier: Apache-2.0
"""Constraints between variables, solved step by step: classes, inheritance, methods, attributes."""


class Variable:
    def __init__(self, value):
        self.value, self.stay, self.readers = value, True, []


class Constraint:
    strength = 0

    def __init__(self, source, target):
        self.source, self.target = source, target
        source.readers.append(self)

    def is_satisfied(self):
        return self.target.value == self.wanted()

    def execute(self):
        self.target.value = self.wanted()

    def wanted(self):
        raise NotImplementedError


class Equal(Constraint):
    strength = 1

    def wanted(self):
        return self.source.value


class Scaled(Constraint):
    strength = 2

    def __init__(self, source, target, scale, offset):
        super().__init__(source, target)
        self.scale, self.offset = scale, offset

    def wanted(self):
        return (self.source.value * self.scale + self.offset) % 65521


class Planner:
    def __init__(self):
        self.executed = 0

    def changed(self, variable):
        todo = [variable]
        while todo:
            for constraint in sorted(todo.pop().readers, key=lambda c: c.strength):
                if not constraint.is_satisfied():
                    constraint.execute()
                    self.executed += 1
                    if isinstance(constraint.target, Variable) and constraint.target.stay:
                        todo.append(constraint.target)


def work():
    chain = [Variable(0) for _ in range(600)]
    for i, (a, b) in enumerate(zip(chain, chain[1:])):
        if i % 3:
            Equal(a, b)
        else:
            Scaled(a, b, 3, i)
    planner = Planner()
    for value in range(1, 160):
        chain[0].value = value
        planner.changed(chain[0])
    return [planner.executed, chain[-1].value]
