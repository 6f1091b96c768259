-- Two more actions are recorded: an original handed out on a page, and a password given for a document.
ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check CHECK (action IN
    ('reopen', 'cancel', 'pause', 'resume', 'block', 'unblock', 'reprioritize', 'erase',
     'retain', 'replay', 'enable', 'download', 'password')) NOT VALID;
